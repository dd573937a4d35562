package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// What kustomize-controller calls itself, where the API server records who applied a field.
const (
	controller = "kustomize-controller"
	group      = "kustomize.toolkit.fluxcd.io"
)

// Flux looks every 5 s. This only shortens the wait.
const pollInterval = time.Second

// outcome is one reconciliation, told as in the Ready condition of a Flux Kustomization.
type outcome struct {
	Revision string `json:"revision"`
	Ready    bool   `json:"ready"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	// Changed lists the objects that were sent.
	Changed []string `json:"changed"`
	// Unhealthy lists, where Ready is false, what kstatus has against which object.
	Unhealthy []health `json:"unhealthy"`
}

type reconciler struct {
	client  client.Client
	manager *ssa.ResourceManager
	source  source
	timeout time.Duration
}

func newReconciler(
	kubeconfig, kubecontext string, from source, timeout time.Duration,
) (*reconciler, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: kubecontext},
	).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = controller
	config.QPS, config.Burst = 50, 300 // the defaults of Flux's controllers
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, transport)
	if err != nil {
		return nil, err
	}
	options := client.Options{HTTPClient: transport, Mapper: mapper}
	kube, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	poller := polling.NewStatusPoller(kube, mapper, polling.Options{})
	manager := ssa.NewResourceManager(kube, poller, ssa.Owner{Field: controller, Group: group})
	return &reconciler{kube, manager, from, timeout}, nil
}

// loop reconciles until ctx ends and writes each outcome as a line of JSON.
func (r *reconciler) loop(ctx context.Context, interval time.Duration, out io.Writer) error {
	lines := json.NewEncoder(out)
	for {
		done := r.reconcile(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := lines.Encode(done); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// reconcile applies the newest commit and waits, in the steps of kustomize-controller.
func (r *reconciler) reconcile(ctx context.Context) outcome {
	done := outcome{Changed: []string{}, Unhealthy: []health{}}
	fail := func(reason string, err error) outcome {
		done.Reason, done.Message = reason, err.Error()
		return done
	}
	commit, err := r.source.head()
	if err != nil {
		return fail("ArtifactFailed", err)
	}
	done.Revision = commit
	objects, err := r.source.objects(commit)
	if err != nil {
		return fail("BuildFailed", err)
	}
	if err := normalize.UnstructuredList(objects); err != nil {
		return fail("ReconciliationFailed", err)
	}
	r.manager.SetOwnerLabels(objects, "models", "flux-system")
	changes, err := r.manager.ApplyAllStaged(ctx, objects, applyOptions())
	for _, change := range changes.Entries {
		if change.Action == ssa.CreatedAction || change.Action == ssa.ConfiguredAction {
			done.Changed = append(done.Changed, change.String())
		}
	}
	if err != nil {
		return fail("ReconciliationFailed", err)
	}
	wait := ssa.WaitOptions{Interval: pollInterval, Timeout: r.timeout, FailFast: true}
	err = r.manager.WaitForSetWithContext(ctx, changes.ToObjMetadataSet(), wait)
	if err != nil {
		done.Unhealthy = r.unhealthy(ctx, changes)
		return fail("HealthCheckFailed", err)
	}
	done.Ready, done.Reason = true, "ReconciliationSucceeded"
	done.Message = fmt.Sprintf("Applied revision: %s", commit)
	return done
}

// unhealthy asks kstatus itself: Flux's own error names the object, not what its condition says.
func (r *reconciler) unhealthy(ctx context.Context, changes *ssa.ChangeSet) []health {
	found := []health{}
	for _, change := range changes.Entries {
		object := &unstructured.Unstructured{}
		// Its field GroupVersion is the version alone.
		object.SetGroupVersionKind(change.ObjMetadata.GroupKind.WithVersion(change.GroupVersion))
		key := client.ObjectKey{
			Namespace: change.ObjMetadata.Namespace,
			Name:      change.ObjMetadata.Name,
		}
		if err := r.client.Get(ctx, key, object); err != nil {
			found = append(found, health{change.Subject, "Unknown", err.Error()})
			continue
		}
		now, err := healthOf(object)
		if err != nil {
			now = health{change.Subject, "Unknown", err.Error()}
		}
		if now.Status != status.CurrentStatus.String() {
			found = append(found, now)
		}
	}
	return found
}

// applyOptions are those of kustomize-controller for a Kustomization with nothing special: it takes
// over from kubectl.
func applyOptions() ssa.ApplyOptions {
	options := ssa.DefaultApplyOptions()
	options.WaitInterval = pollInterval
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: controller, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
	}
	return options
}
