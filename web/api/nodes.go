package api

import (
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
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
	"reboot": {method: "rebootNode"}, "replace": {method: "replaceNode"},
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
