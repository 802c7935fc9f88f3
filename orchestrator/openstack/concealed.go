package openstack

import (
	"context"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
)

// Heat tells nobody the values of hidden parameters, but it compares them. So where a server was made with one, Heat is asked what an
// update would do, without doing it (https://docs.openstack.org/api-ref/orchestration/v1/, "Preview stack update").

// updatePreview is what Heat would do, by the names of resources; of those in stacks of a stack, too.
type updatePreview struct {
	Updated  []previewed `json:"updated"`
	Replaced []previewed `json:"replaced"`
}

type previewed struct {
	Name string `json:"resource_name"`
	Type string `json:"resource_type"`
}

func (p *Project) previewUpdate(ctx context.Context, existing *stacks.RetrievedStack, content Content) (updatePreview, error) {
	var answer struct {
		Changes updatePreview `json:"resource_changes"`
	}
	body, err := request{content, existing.Name, 0}.ToStackUpdateMap()
	if err != nil {
		return answer.Changes, err
	}
	url := p.orchestration.ServiceURL("stacks", existing.Name, existing.ID, "preview") + "?show_nested=True"
	response, err := p.orchestration.Put(ctx, url, body, &answer, &gophercloud.RequestOpts{OkCodes: []int{200}})
	if response != nil {
		_ = response.Body.Close()
	}
	if err != nil {
		return answer.Changes, explain(ctx, err, "preview the update of stack "+existing.Name, content)
	}
	return answer.Changes, nil
}

// concealed lists the changes of servers whose former properties Heat does not tell: unknown has them by resource, for a server or for what
// makes servers in a stack of its own.
func (p *Project) concealed(ctx context.Context, existing *stacks.RetrievedStack, content Content, unknown map[string][]string, resources []stackresources.Resource) ([]*ServerChange, error) {
	preview, err := p.previewUpdate(ctx, existing, content)
	if err != nil {
		return nil, err
	}
	var problems []*ServerChange
	for _, resource := range resources {
		properties := unknown[resource.Name]
		costly := preview.Replaced
		// Which property Heat would update it does not say: one that may be done without a loss counts like the others.
		if slices.ContainsFunc(properties, func(property string) bool { return EffectOf(serverType, property) != Replaced }) {
			costly = slices.Concat(costly, preview.Updated)
		}
		if len(properties) == 0 || !slices.ContainsFunc(costly, func(one previewed) bool {
			return one.Name == resource.Name || resource.Type != serverType && one.Type == serverType && content.resource(one.Name) == nil
		}) {
			continue
		}
		problems = append(problems, &ServerChange{Resource: resource.Name, Server: strings.TrimPrefix(content.nameOf(resource.Name), "server "),
			ServerID: resource.PhysicalID, Property: properties[0], From: concealedValue, To: "another one"})
	}
	return problems, nil
}

// concealedValue stands for a value of a hidden parameter.
const concealedValue = "the value of a hidden parameter"
