package main

import (
	"errors"
	"log/slog"
	"os"

	helm "helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
)

// helmName is the name under which the image has this program as Helm's own, for people.
const helmName = "helm"

// runHelm runs Helm's command line, and returns its exit code. Releases keep the field manager by which Burano works on them: else each of the two would find
// the other's fields in conflict.
func runHelm() int {
	kube.ManagedFieldsManager = fieldManager
	root, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err != nil {
		slog.Error("helm cannot begin", "error", err)
		return 1
	}
	err = root.Execute() // prints the error
	if failed := (helm.CommandError{}); errors.As(err, &failed) {
		return failed.ExitCode
	}
	if err != nil {
		return 1
	}
	return 0
}
