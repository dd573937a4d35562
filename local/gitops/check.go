package main

import (
	"fmt"
	"io"

	helm "github.com/fluxcd/helm-controller/api/v2"
	kustomize "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa/utils"
	flux "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// checkManifests refuses a field that Flux's Go types do not have, and any kind that is not Flux's.
func checkManifests(in io.Reader) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		flux.AddToScheme, kustomize.AddToScheme, helm.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	objects, err := utils.ReadObjects(in)
	if err != nil {
		return err
	}
	for _, object := range objects {
		text, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		if _, _, err := strict.Decode(text, nil, nil); err != nil {
			return fmt.Errorf("%s: %w", utils.FmtUnstructured(object), err)
		}
	}
	return nil
}
