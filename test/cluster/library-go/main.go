// The rotation controllers of OpenShift's library-go as a peer: one pass of each over the chains that are given, against any Kubernetes
// API. What it wrote, it says.
//
// On standard input: {"chains": [...]}, see Chain. On standard output: {"writes": [...], "events": [...], "errors": [...]}.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/openshift/library-go/pkg/controller/factory"
	"github.com/openshift/library-go/pkg/operator/certrotation"
	"github.com/openshift/library-go/pkg/operator/events"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

type Object struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type Certificate struct {
	Object
	ValidityMs int64 `json:"validityMs"`
	RefreshMs  int64 `json:"refreshMs"`
}

// Chain is a signer, its bundle and what it signs.
type Chain struct {
	Controller string      `json:"controller"`
	Component  string      `json:"component"`
	Signer     Certificate `json:"signer"`
	Bundle     Object      `json:"bundle"`
	Target     struct {
		Certificate
		User      string   `json:"user"`
		Groups    []string `json:"groups"`
		Hostnames []string `json:"hostnames"`
	} `json:"target"`
}

type Report struct {
	Writes []string `json:"writes"`
	Events []string `json:"events"`
	Errors []string `json:"errors"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "whom to talk to")
	flag.Parse()
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	var input struct {
		Chains []Chain `json:"chains"`
	}
	must(json.NewDecoder(os.Stdin).Decode(&input))
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	report, err := pass(config, input.Chains)
	must(err)
	must(json.NewEncoder(os.Stdout).Encode(report))
}

func pass(config *rest.Config, chains []Chain) (*Report, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	report := &Report{Writes: []string{}, Events: []string{}, Errors: []string{}}
	writes := &recordedWrites{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return writes.around(next) })
	config.QPS, config.Burst = 1000, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	recorder := events.NewInMemoryRecorder("library-go")
	factories := map[string]informers.SharedInformerFactory{}
	in := func(namespace string) informers.SharedInformerFactory {
		if factories[namespace] == nil {
			factories[namespace] = informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
		}
		return factories[namespace]
	}
	controllers := []factory.Controller{}
	for _, chain := range chains {
		controllers = append(controllers, controllerOf(chain, client, in, recorder))
	}
	for _, f := range factories {
		f.Start(ctx.Done())
	}
	for _, f := range factories {
		f.WaitForCacheSync(ctx.Done())
	}
	for i, controller := range controllers {
		before := writes.count()
		if err := controller.Sync(ctx, factory.NewSyncContext(controller.Name(), recorder)); err != nil {
			report.Errors = append(report.Errors, fmt.Sprintf("%s: %v", chains[i].Controller, err))
		}
		// Chains share signers and bundles: the next one must see what this one wrote.
		if writes.count() > before {
			if err := caughtUp(ctx, client, chains[i], in); err != nil {
				return nil, err
			}
		}
	}
	report.Writes = append(report.Writes, writes.list...)
	for _, event := range recorder.Events() {
		report.Events = append(report.Events, event.Reason+" "+event.Message)
	}
	return report, nil
}

func controllerOf(chain Chain, client kubernetes.Interface, in func(string) informers.SharedInformerFactory, recorder events.Recorder) factory.Controller {
	annotations := certrotation.AdditionalAnnotations{JiraComponent: chain.Component}
	signers := in(chain.Signer.Namespace).Core().V1().Secrets()
	bundles := in(chain.Bundle.Namespace).Core().V1().ConfigMaps()
	targets := in(chain.Target.Namespace).Core().V1().Secrets()
	// An informer exists from the moment it is asked for.
	signers.Informer()
	bundles.Informer()
	targets.Informer()
	milliseconds := func(count int64) time.Duration { return time.Duration(count) * time.Millisecond }
	return certrotation.NewCertRotationController(
		chain.Controller,
		certrotation.RotatedSigningCASecret{
			Namespace: chain.Signer.Namespace, Name: chain.Signer.Name,
			Validity: milliseconds(chain.Signer.ValidityMs), Refresh: milliseconds(chain.Signer.RefreshMs),
			AdditionalAnnotations: annotations,
			Informer:              signers, Lister: signers.Lister(), Client: client.CoreV1(), EventRecorder: recorder,
		},
		certrotation.CABundleConfigMap{
			Namespace: chain.Bundle.Namespace, Name: chain.Bundle.Name,
			AdditionalAnnotations: annotations,
			Informer:              bundles, Lister: bundles.Lister(), Client: client.CoreV1(), EventRecorder: recorder,
		},
		certrotation.RotatedSelfSignedCertKeySecret{
			Namespace: chain.Target.Namespace, Name: chain.Target.Name,
			Validity: milliseconds(chain.Target.ValidityMs), Refresh: milliseconds(chain.Target.RefreshMs),
			AdditionalAnnotations: annotations,
			CertCreator:           creatorOf(chain),
			Informer:              targets, Lister: targets.Lister(), Client: client.CoreV1(), EventRecorder: recorder,
		},
		recorder,
		silentReporter{},
	)
}

func creatorOf(chain Chain) certrotation.TargetCertCreator {
	if len(chain.Target.Hostnames) > 0 {
		return &certrotation.ServingRotation{Hostnames: func() []string { return chain.Target.Hostnames }}
	}
	return &certrotation.ClientRotation{UserInfo: &user.DefaultInfo{Name: chain.Target.User, Groups: chain.Target.Groups}}
}

// caughtUp waits until the caches hold what the API holds.
func caughtUp(ctx context.Context, client kubernetes.Interface, chain Chain, in func(string) informers.SharedInformerFactory) error {
	for _, o := range []Object{chain.Signer.Object, chain.Target.Object} {
		live, err := client.CoreV1().Secrets(o.Namespace).Get(ctx, o.Name, getOptions)
		if err != nil {
			return err
		}
		for {
			cached, err := in(o.Namespace).Core().V1().Secrets().Lister().Secrets(o.Namespace).Get(o.Name)
			if err == nil && cached.ResourceVersion == live.ResourceVersion {
				break
			}
			if err := pause(ctx); err != nil {
				return err
			}
		}
	}
	live, err := client.CoreV1().ConfigMaps(chain.Bundle.Namespace).Get(ctx, chain.Bundle.Name, getOptions)
	if err != nil {
		return err
	}
	for {
		cached, err := in(chain.Bundle.Namespace).Core().V1().ConfigMaps().Lister().ConfigMaps(chain.Bundle.Namespace).Get(chain.Bundle.Name)
		if err == nil && cached.ResourceVersion == live.ResourceVersion {
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(5 * time.Millisecond):
		return nil
	}
}

// recordedWrites keeps every request that changes something.
type recordedWrites struct {
	lock sync.Mutex
	list []string
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (w *recordedWrites) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet {
			w.lock.Lock()
			w.list = append(w.list, request.Method+" "+strings.TrimPrefix(request.URL.Path, "/api/v1/"))
			w.lock.Unlock()
		}
		return next.RoundTrip(request)
	})
}

func (w *recordedWrites) count() int {
	w.lock.Lock()
	defer w.lock.Unlock()
	return len(w.list)
}

var getOptions = metav1.GetOptions{}

type silentReporter struct{}

func (silentReporter) Report(context.Context, string, error) (bool, error) { return false, nil }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
