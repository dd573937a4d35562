package main

import (
	"encoding/json"
	"io"

	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// health is what kstatus says of one object.
type health struct {
	Object  string `json:"object"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

func healthOf(object *unstructured.Unstructured) (health, error) {
	result, err := status.Compute(object)
	if err != nil {
		return health{}, err
	}
	return health{utils.FmtUnstructured(object), result.Status.String(), result.Message}, nil
}

// printStatuses writes one line of JSON for each object of a YAML or JSON stream.
func printStatuses(in io.Reader, out io.Writer) error {
	objects, err := utils.ReadObjects(in)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	for _, object := range objects {
		found, err := healthOf(object)
		if err != nil {
			return err
		}
		if err := lines.Encode(found); err != nil {
			return err
		}
	}
	return nil
}
