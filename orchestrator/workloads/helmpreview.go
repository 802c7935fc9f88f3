package workloads

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/sensitive"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/secret"
)

// unknownKind is Helm's error for an object whose kind is missing in the cluster: another release of the same deployment can define it.
const unknownKind = "no matches for kind"

// previewReleases adds the changes that a deployment would make in Kubernetes through the Helm releases of a cluster, and the releases that it could
// not install.
func (c Previews) previewReleases(ctx context.Context, in *Observed, releases []*muranopl.Object, foreseen *preview.Foreseen) {
	for _, object := range releases {
		request, err := requestOf(ctx, "diff", object)
		if err != nil {
			foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: object.ID(), Text: err.Error()})
			continue
		}
		if in.Live == nil && in.Why == nil {
			continue
		}
		var answer nodes.HelmAnswer
		if err = in.Why; err == nil {
			answer, err = in.Live.Helm(ctx, request)
		}
		switch {
		case err != nil || strings.Contains(answer.Error, unknownKind):
			why := errors.Join(err, told(answer.Error))
			foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("what Helm release %s changes in Kubernetes is not known: %v", request.Name, why))
		case answer.Error != "":
			text := concealed(request.Values, answer.Values).Hide(answer.Error)
			foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: object.ID(), Text: fmt.Sprintf("Helm release %s: %s", request.Name, text)})
		default:
			foreseen.Kubernetes = append(foreseen.Kubernetes, kubernetesChanges(object, request, answer)...)
			if answer.MoreChanges > 0 {
				foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("Helm release %s changes %d objects more in Kubernetes", request.Name, answer.MoreChanges))
			}
		}
	}
}

func told(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// concealed are the secrets among values.
func concealed(values ...map[string]any) *secret.Known {
	known := &secret.Known{}
	for _, one := range values {
		known.Note("", one)
	}
	return known
}

// kubernetesChanges are the changes of a release, without the secrets among its values as they are and as they would be.
func kubernetesChanges(object *muranopl.Object, request nodes.HelmRequest, answer nodes.HelmAnswer) []preview.KubernetesChange {
	known := concealed(request.Values, answer.Values)
	list := make([]preview.KubernetesChange, 0, len(answer.Changes))
	for _, one := range answer.Changes {
		change := preview.KubernetesChange{ObjectID: object.ID(), Object: request.Name, What: one.What, Kind: one.Kind, Namespace: one.Namespace, Name: one.Name, More: one.More}
		for _, field := range one.Fields {
			change.Fields = append(change.Fields, preview.KubernetesField{Path: field.Path, Before: shown(known, field.Path, field.Before), After: shown(known, field.Path, field.After)})
		}
		list = append(list, change)
	}
	return list
}

// shown is a value at a path of an object, without its secrets.
func shown(known *secret.Known, path string, value any) any {
	name := ""
	if sensitive.Path(path) {
		name = "secret"
	}
	return known.HideIn(sensitive.Texts(name, value, func(string) string { return secret.Mark }))
}
