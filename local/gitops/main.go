// Command gitops does to a cluster what Flux does, with Flux's own libraries and a local git
// repository in place of Flux's controllers. It is for tests.
//
//	gitops reconcile --repository DIR --kubeconfig FILE --context NAME
//	gitops status <OBJECTS    what kstatus says of objects as they are on the input
//	gitops check <MANIFESTS   decodes Flux's own kinds strictly, by Flux's Go types
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gitops:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("say what to do: reconcile, status or check")
	}
	switch command, rest := arguments[0], arguments[1:]; command {
	case "reconcile":
		return runReconcile(rest)
	case "status":
		return printStatuses(os.Stdin, os.Stdout)
	case "check":
		return checkManifests(os.Stdin)
	default:
		return fmt.Errorf("%q is not known: say reconcile, status or check", command)
	}
}

func runReconcile(arguments []string) error {
	flags := flag.NewFlagSet("reconcile", flag.ContinueOnError)
	repository := flags.String("repository", "", "folder of the git repository")
	kubeconfig := flags.String("kubeconfig", "", "file that tells where the cluster is")
	kubecontext := flags.String("context", "", "context in that file")
	interval := flags.Duration("interval", 3*time.Second, "time between two reconciliations")
	timeout := flags.Duration("timeout", time.Minute, "most that is waited for objects to be ready")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flux, err := newReconciler(*kubeconfig, *kubecontext, source{*repository}, *timeout)
	if err != nil {
		return err
	}
	return flux.loop(ctx, *interval, os.Stdout)
}
