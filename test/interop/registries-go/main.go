// Reads what is written for nodes with the library that the container runtime reads it with: whether it can, and from where it
// would pull an image.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/containers/image/v5/docker/reference"
	_ "github.com/containers/image/v5/openshift" // "atomic"
	"github.com/containers/image/v5/pkg/sysregistriesv2"
	"github.com/containers/image/v5/signature"
	"github.com/containers/image/v5/types"
)

type question struct {
	Policy     string   `json:"policy"`
	Registries string   `json:"registries"`
	Search     string   `json:"search"`
	Images     []string `json:"images"`
}

type answer struct {
	Policy     string `json:"policy"`
	Registries string `json:"registries"`
	// By image: where it is looked for in turn; "blocked" ends the list where its own place is not asked.
	Places map[string][]string `json:"places"`
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
	a := answer{Places: map[string][]string{}}
	if q.Policy != "" {
		if _, err := signature.NewPolicyFromBytes([]byte(q.Policy)); err != nil {
			a.Policy = err.Error()
		}
	}
	folder, err := os.MkdirTemp("", "rotunda-registries-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	context := &types.SystemContext{SystemRegistriesConfPath: folder + "/registries.conf", SystemRegistriesConfDirPath: folder + "/conf.d"}
	write(context.SystemRegistriesConfPath, q.Registries)
	if err := os.Mkdir(context.SystemRegistriesConfDirPath, 0o700); err != nil {
		panic(err)
	}
	if q.Search != "" {
		write(context.SystemRegistriesConfDirPath+"/01-image-searchRegistries.conf", q.Search)
	}
	if _, err := sysregistriesv2.GetRegistries(context); err != nil {
		a.Registries = err.Error()
		return a
	}
	for _, image := range q.Images {
		a.Places[image] = places(context, image)
	}
	return a
}

func places(context *types.SystemContext, image string) []string {
	named, err := reference.ParseNamed(image)
	if err != nil {
		return []string{err.Error()}
	}
	registry, err := sysregistriesv2.FindRegistry(context, image)
	if err != nil {
		return []string{err.Error()}
	}
	if registry == nil {
		return []string{image}
	}
	sources, err := registry.PullSourcesFromReference(named)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for i, source := range sources {
		// The last one is the registry itself.
		if i == len(sources)-1 && registry.Blocked {
			return append(found, "blocked")
		}
		text := source.Reference.String()
		if source.Endpoint.Insecure {
			text += " insecure"
		}
		found = append(found, text)
	}
	return found
}

func write(path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		panic(err)
	}
}
