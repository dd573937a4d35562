package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"strings"

	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// source is a git repository, of which only what is committed counts.
type source struct{ folder string }

// head is the hash of the newest commit.
func (s source) head() (string, error) {
	hash, err := s.git("rev-parse", "HEAD")
	return strings.TrimSpace(string(hash)), err
}

// objects are those of all YAML files of a commit.
func (s source) objects(commit string) ([]*unstructured.Unstructured, error) {
	archive, err := s.git("archive", "--format=tar", commit)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	files := tar.NewReader(bytes.NewReader(archive))
	for {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Ext(file.Name) != ".yaml" {
			continue
		}
		found, err := utils.ReadObjects(files)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		objects = append(objects, found...)
	}
}

func (s source) git(arguments ...string) ([]byte, error) {
	command := exec.Command("git", append([]string{"-C", s.folder}, arguments...)...)
	output, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("git %s: %s", arguments[0], strings.TrimSpace(string(failed.Stderr)))
	}
	return output, err
}
