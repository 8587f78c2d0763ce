// Kubernetes' own definitions judge our protocol buffers: each must be the object that its JSON is.
//
// Input is a list of {protobuf, json}, bytes in base64; with "watch": true the bytes are those of a watch and the JSON its events.
// Output is a list of texts: what is wrong, empty where nothing is.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
)

type question struct {
	Protobuf []byte          `json:"protobuf"`
	Json     json.RawMessage `json:"json"`
	Watch    bool            `json:"watch"`
}

type judge struct {
	fromJson     runtime.Decoder
	fromProtobuf runtime.Decoder
	raw          runtime.Decoder
}

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, autoscalingv1.AddToScheme,
		batchv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		discoveryv1.AddToScheme, eventsv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme,
	} {
		must(add(scheme))
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	j := judge{
		fromJson:     jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Strict: true}),
		fromProtobuf: protobuf.NewSerializer(scheme, scheme),
		raw:          protobuf.NewRawSerializer(scheme, scheme),
	}
	var questions []question
	must(json.NewDecoder(os.Stdin).Decode(&questions))
	answers := []string{}
	for _, q := range questions {
		var err error
		if q.Watch {
			err = j.watch(q)
		} else {
			err = j.same(q.Protobuf, q.Json)
		}
		if err != nil {
			answers = append(answers, err.Error())
		} else {
			answers = append(answers, "")
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(answers))
}

func (j judge) same(bytes []byte, text []byte) error {
	ours, _, err := j.fromProtobuf.Decode(bytes, nil, nil)
	if err != nil {
		return fmt.Errorf("protobuf: %w", err)
	}
	theirs, _, err := j.fromJson.Decode(text, nil, nil)
	if err != nil {
		return fmt.Errorf("json: %w", err)
	}
	if ours.GetObjectKind().GroupVersionKind() != theirs.GetObjectKind().GroupVersionKind() {
		return fmt.Errorf("%v is not %v", ours.GetObjectKind().GroupVersionKind(), theirs.GetObjectKind().GroupVersionKind())
	}
	if equality.Semantic.DeepEqual(ours, theirs) {
		return nil
	}
	a, _ := json.Marshal(ours)
	b, _ := json.Marshal(theirs)
	return fmt.Errorf("%s is not %s", a, b)
}

func (j judge) watch(q question) error {
	var events []struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(q.Json, &events); err != nil {
		return err
	}
	frames := protobuf.LengthDelimitedFramer.NewFrameReader(io.NopCloser(bytes.NewReader(q.Protobuf)))
	stream := streaming.NewDecoder(frames, j.raw)
	for _, event := range events {
		var got metav1.WatchEvent
		if _, _, err := stream.Decode(nil, &got); err != nil {
			return fmt.Errorf("frame: %w", err)
		}
		if got.Type != event.Type {
			return fmt.Errorf("%s is not %s", got.Type, event.Type)
		}
		if err := j.same(got.Object.Raw, event.Object); err != nil {
			return err
		}
	}
	if _, _, err := stream.Decode(nil, &metav1.WatchEvent{}); err != io.EOF {
		return fmt.Errorf("more than %d events: %v", len(events), err)
	}
	return nil
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
