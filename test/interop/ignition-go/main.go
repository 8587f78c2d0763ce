// Answers questions about Ignition documents with Ignition's own library: is this one valid, what do these two merge to.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	v3_4 "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/coreos/ignition/v2/config/validate"
)

type question struct {
	Op       string          `json:"op"`
	Document json.RawMessage `json:"document"`
	Later    json.RawMessage `json:"later"`
}

type answer struct {
	Ok     bool            `json:"ok"`
	Error  string          `json:"error,omitempty"`
	Merged json.RawMessage `json:"merged,omitempty"`
}

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers := make([]answer, len(questions))
	for i, q := range questions {
		answers[i] = ask(q)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func ask(q question) answer {
	config, err := parse(q.Document)
	if err != nil {
		return answer{Error: err.Error()}
	}
	if q.Op != "merge" {
		return answer{Ok: true}
	}
	later, err := parse(q.Later)
	if err != nil {
		return answer{Error: err.Error()}
	}
	merged, err := json.Marshal(v3_4.Merge(config, later))
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Ok: true, Merged: merged}
}

// Accepts 3.0 to 3.4 by their own rules and then by those of 3.4, as the machine-config operator does.
func parse(raw json.RawMessage) (types.Config, error) {
	config, report, err := v3_4.ParseCompatibleVersion(raw)
	if err != nil {
		return config, fmt.Errorf("%w: %s", err, report.String())
	}
	report.Merge(validate.ValidateWithContext(config, nil))
	if report.IsFatal() {
		return config, fmt.Errorf("%s", report.String())
	}
	return config, nil
}
