package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/access"
)

// setNode is the action of clusters that changes a node.
const setNode = "setNode"

// nodeDeed is an action of clusters about one node, with the arguments that its path gives.
type nodeDeed struct {
	method string
	given  map[string]any
}

// nodeDeeds are by the last part of their path.
var nodeDeeds = map[string]nodeDeed{
	"cordon": {setNode, map[string]any{"cordoned": true}}, "uncordon": {setNode, map[string]any{"cordoned": false}},
	"lock": {setNode, map[string]any{"locked": true}}, "unlock": {setNode, map[string]any{"locked": false}},
	"reboot": {method: "rebootNode"}, "replace": {method: "replaceNode"}, "swact": {method: "swactNode"},
}

// nodeHandlers show the nodes of clusters, their labels and taints, and change them by the clusters' actions.
type nodeHandlers struct {
	orchestrator *orchestrator.Service
	clusters     Clusters
	limits       Limits
}

func (h nodeHandlers) register(v1 *echo.Group) {
	const node = "/environments/:environment/clusters/:cluster/nodes/:node"
	body := readBody(h.limits.Values)
	v1.GET(node, h.show)
	v1.GET(node+"/labels", h.labels)
	v1.POST(node+"/labels", h.call(setNode, label), body)
	v1.DELETE(node+"/labels", h.call(setNode, removal("removeLabels")))
	v1.GET(node+"/taints", h.taints)
	v1.POST(node+"/taints", h.call(setNode, taint), body)
	v1.DELETE(node+"/taints", h.call(setNode, removal("removeTaints")))
	for path, deed := range nodeDeeds {
		v1.POST(node+"/"+path, h.call(deed.method, deed.arguments), body)
	}
}

// find asks the cluster for the node.
func (h nodeHandlers) find(c echo.Context) (found access.NodeStatus, err error) {
	environmentID, clusterID := c.Param("environment"), c.Param("cluster")
	ctx, caller := calling(c)
	if err := h.orchestrator.Environments().MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return found, err
	}
	if h.clusters == nil {
		return found, fault.New(fault.NotFound, "This Burano asks no clusters")
	}
	status, err := h.clusters.Status(ctx, environmentID, clusterID)
	if err != nil {
		return found, err
	}
	i := slices.IndexFunc(status.Nodes, func(node access.NodeStatus) bool { return node.Name == c.Param("node") })
	if i < 0 {
		return found, fault.New(fault.NotFound, "Cluster %s has no node %s", status.Name, c.Param("node"))
	}
	return status.Nodes[i], nil
}

func (h nodeHandlers) show(c echo.Context) error {
	found, err := h.find(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, found)
}

func (h nodeHandlers) labels(c echo.Context) error {
	found, err := h.find(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"labels": found.Labels, "set": found.Set.Labels})
}

func (h nodeHandlers) taints(c echo.Context) error {
	found, err := h.find(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"taints": found.Taints, "set": found.Set.Taints})
}

// label sets the labels of {"labels": {KEY: VALUE}}.
func label(c echo.Context) (map[string]any, error) {
	fields, err := object(c)
	if err != nil {
		return nil, err
	}
	labels, ok := fields["labels"].(map[string]any)
	if !ok || len(labels) == 0 {
		return nil, fault.New(fault.Invalid, `Send {"labels": {KEY: VALUE, …}}`)
	}
	for key, value := range labels {
		if _, ok := value.(string); !ok {
			return nil, fault.New(fault.Invalid, "The value of label %s is a text, not %v", key, value)
		}
	}
	return map[string]any{"labels": labels}, nil
}

// taint sets the taints of {"taints": [{"key", "value", "effect"}]}.
func taint(c echo.Context) (map[string]any, error) {
	fields, err := object(c)
	if err != nil {
		return nil, err
	}
	taints, ok := fields["taints"].([]any)
	if !ok || len(taints) == 0 {
		return nil, fault.New(fault.Invalid, `Send {"taints": [{"key": KEY, "value": VALUE, "effect": EFFECT}, …]}`)
	}
	return map[string]any{"taints": taints}, nil
}

// removal removes the labels, or taints, whose keys the query names (?key=K&key=L).
func removal(argument string) func(c echo.Context) (map[string]any, error) {
	return func(c echo.Context) (map[string]any, error) {
		keys := []any{}
		for _, key := range c.QueryParams()["key"] {
			keys = append(keys, key)
		}
		if len(keys) == 0 {
			return nil, fault.New(fault.Invalid, "Say which: ?key=KEY, once for each")
		}
		return map[string]any{argument: keys}, nil
	}
}

// arguments are the body's arguments, which may be omitted, and those of the path.
func (d nodeDeed) arguments(c echo.Context) (map[string]any, error) {
	if c.Request().ContentLength == 0 {
		return d.with(map[string]any{})
	}
	fields, err := object(c)
	if err != nil {
		return nil, err
	}
	if _, ok := fields["node"]; ok {
		return nil, fault.New(fault.Invalid, "The path says which node: leave node out")
	}
	return d.with(fields)
}

func (d nodeDeed) with(fields map[string]any) (map[string]any, error) {
	for name, value := range d.given {
		if _, ok := fields[name]; ok {
			return nil, fault.New(fault.Invalid, "The path says it: leave %s out", name)
		}
		fields[name] = value
	}
	return fields, nil
}

// call starts an action of the cluster about the node, with the arguments of the request.
func (h nodeHandlers) call(method string, given func(echo.Context) (map[string]any, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		environmentID, clusterID := c.Param("environment"), c.Param("cluster")
		ctx, caller := calling(c)
		if err := h.orchestrator.Environments().MayReach(ctx, caller, environmentID, clusterID); err != nil {
			return err
		}
		args, err := given(c)
		if err != nil {
			return err
		}
		args["node"] = c.Param("node")
		task, err := h.orchestrator.Actions().Call(ctx, caller, environmentID, clusterID+"_"+method, args)
		if errors.Is(err, orchestrator.ErrNoAction) {
			return fault.New(fault.Conflict, "Object %s is no Kubernetes cluster, or was last deployed by a former version of Burano: deploy the environment", clusterID)
		}
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, map[string]string{"task_id": task})
	}
}

// hostLabelHandlers show and change labels of hosts in StarlingX's form, where a host is a server's id. The labels are those of nodeHandlers.
type hostLabelHandlers struct {
	orchestrator *orchestrator.Service
	clusters     Clusters
}

func (h hostLabelHandlers) register(v1 *echo.Group) {
	v1.GET("/ihosts/:host/labels", h.list)
	v1.POST("/labels/:host", h.assign)
	v1.DELETE("/labels/:hostlabel", h.remove)
}

// find looks for a host among the environments of the caller's project. fits reports whether it is the one.
func (h hostLabelHandlers) find(ctx context.Context, caller identity.Caller, fits func(access.Host) bool) (host access.Host, found bool, err error) {
	if h.clusters == nil {
		return host, false, nil
	}
	environments, err := h.orchestrator.Environments().List(ctx, caller, orchestrator.ListOptions{})
	if err != nil {
		return host, false, err
	}
	for _, environment := range environments {
		hosts, err := h.clusters.Hosts(ctx, environment.ID)
		if err != nil {
			return host, false, err
		}
		if at := slices.IndexFunc(hosts, fits); at >= 0 {
			return hosts[at], true, nil
		}
	}
	return host, false, nil
}

// host is the host that the path names.
func (h hostLabelHandlers) host(c echo.Context) (access.Host, error) {
	id := c.Param("host")
	if uuid.Validate(id) != nil {
		return access.Host{}, fault.New(fault.Invalid, "%s is no id of a host, which is the id of a server in Nova", id)
	}
	ctx, caller := calling(c)
	host, found, err := h.find(ctx, caller, func(host access.Host) bool { return strings.EqualFold(host.Server, id) })
	if err == nil && !found {
		err = fault.New(fault.NotFound, "No node of a cluster in this project has the server %s", id)
	}
	return host, err
}

func (h hostLabelHandlers) list(c echo.Context) error {
	host, err := h.host(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"labels": host.Labels})
}

// assign sets the labels of {KEY: VALUE, …}. A label that is there with another value is refused without ?overwrite=true.
func (h hostLabelHandlers) assign(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	if len(fields) == 0 {
		return fault.New(fault.Invalid, `Send {KEY: VALUE, …}`)
	}
	for key, value := range fields {
		if _, ok := value.(string); !ok {
			return fault.New(fault.Invalid, "The value of label %s is a text, not %v", key, value)
		}
	}
	overwrite := false
	switch given := c.QueryParam("overwrite"); given {
	case "", "false", "False":
	case "true", "True":
		overwrite = true
	default:
		return fault.New(fault.Invalid, "overwrite is true or false, and not %q", given)
	}
	host, err := h.host(c)
	if err != nil {
		return err
	}
	former := map[string]access.HostLabel{}
	for _, label := range host.Labels {
		former[label.Key] = label
		if _, given := fields[label.Key]; given && !overwrite {
			return fault.New(fault.Conflict, "Host %s has the label %s already: use ?overwrite=true for another value", host.Server, label.Label)
		}
	}
	task, err := h.change(c, host, map[string]any{"labels": fields})
	if err != nil {
		return err
	}
	made := []access.HostLabel{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		one, there := former[key]
		if !there {
			one = access.NewHostLabel(host, task, key)
		}
		one.Value = fields[key].(string)
		one.Label = key + "=" + one.Value
		made = append(made, one)
	}
	if len(made) > 1 {
		return c.JSON(http.StatusOK, map[string]any{"labels": made, "task_id": task})
	}
	return c.JSON(http.StatusOK, struct {
		access.HostLabel
		Labels []access.HostLabel `json:"labels"`
		Task   string             `json:"task_id"`
	}{made[0], made, task})
}

// remove removes the label whose id the path names.
func (h hostLabelHandlers) remove(c echo.Context) error {
	id, key := c.Param("hostlabel"), ""
	if uuid.Validate(id) != nil {
		return fault.New(fault.Invalid, "%s is no id of a label", id)
	}
	ctx, caller := calling(c)
	host, found, err := h.find(ctx, caller, func(host access.Host) bool {
		at := slices.IndexFunc(host.Labels, func(label access.HostLabel) bool { return strings.EqualFold(label.UUID, id) })
		if at >= 0 {
			key = host.Labels[at].Key
		}
		return at >= 0
	})
	if err != nil {
		return err
	}
	if !found {
		return fault.New(fault.NotFound, "No host in this project has a label with the id %s", id)
	}
	if _, err := h.change(c, host, map[string]any{"removeLabels": []any{key}}); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// change starts the action that changes the host's labels.
func (h hostLabelHandlers) change(c echo.Context, host access.Host, args map[string]any) (task string, err error) {
	ctx, caller := calling(c)
	args["node"] = host.Node
	task, err = h.orchestrator.Actions().Call(ctx, caller, host.Environment, host.Cluster+"_"+setNode, args)
	if errors.Is(err, orchestrator.ErrNoAction) {
		return "", fault.New(fault.Conflict, "The cluster of host %s was last deployed by a former version of Burano: deploy the environment", host.Server)
	}
	return task, err
}
