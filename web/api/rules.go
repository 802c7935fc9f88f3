package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/web/auth"
	"github.com/burano/burano/web/policy"
)

// rules names for each route the rule of the policy that a caller must pass, as Murano asks for them. Rights that depend on more
// than the route (publishing a package, other projects' environments) are checked by the services, through identity.Caller.May.
var rules = map[string]string{
	"GET /v1/environments":                                        "list_environments",
	"POST /v1/environments":                                       "create_environment",
	"GET /v1/environments/:environment":                           "show_environment",
	"PUT /v1/environments/:environment":                           "update_environment",
	"DELETE /v1/environments/:environment":                        "delete_environment",
	"GET /v1/environments/:environment/lastStatus":                "show_environment",
	"GET /v1/environments/:environment/model":                     "show_environment",
	"GET /v1/environments/:environment/model/*":                   "show_environment",
	"POST /v1/environments/:environment/configure":                "update_environment",
	"GET /v1/environments/:environment/sessions/:session":         "show_environment",
	"DELETE /v1/environments/:environment/sessions/:session":      "update_environment",
	"POST /v1/environments/:environment/sessions/:session/deploy": "update_environment",
	"GET /v1/environments/:environment/services":                  "show_environment",
	"GET /v1/environments/:environment/services/*":                "show_environment",
	"POST /v1/environments/:environment/services":                 "update_environment",
	"POST /v1/environments/:environment/services/*":               "update_environment",
	"PUT /v1/environments/:environment/services":                  "update_environment",
	"PUT /v1/environments/:environment/services/*":                "update_environment",
	"DELETE /v1/environments/:environment/services":               "update_environment",
	"DELETE /v1/environments/:environment/services/*":             "update_environment",
	"GET /v1/environments/:environment/deployments":               "list_deployments",
	"GET /v1/environments/:environment/deployments/:deployment":   "statuses_deployments",
	"GET /v1/deployments":                                         "list_deployments_all_environments",
	"POST /v1/environments/:environment/actions/:action":          "execute_action",
	"GET /v1/environments/:environment/actions/:task":             "execute_action",

	"POST /v1/actions": "execute_action",

	"PATCH /v1/environments/:environment/model":  "update_environment",
	"PATCH /v1/environments/:environment/model/": "update_environment",

	"GET /v1/ihosts/:host/labels":  "show_environment",
	"POST /v1/labels/:host":        "execute_action",
	"DELETE /v1/labels/:hostlabel": "execute_action",

	"GET /v1/templates":                               "list_env_templates",
	"POST /v1/templates":                              "create_env_template",
	"GET /v1/templates/:template":                     "show_env_template",
	"PUT /v1/templates/:template":                     "update_env_template",
	"DELETE /v1/templates/:template":                  "delete_env_template",
	"POST /v1/templates/:template/clone":              "clone_env_template",
	"POST /v1/templates/:template/create-environment": "create_environment",
	"GET /v1/templates/:template/services":            "show_env_template",
	"GET /v1/templates/:template/services/*":          "show_env_template",
	"POST /v1/templates/:template/services":           "update_env_template",
	"POST /v1/templates/:template/services/*":         "update_env_template",
	"PUT /v1/templates/:template/services":            "update_service_env_template",
	"PUT /v1/templates/:template/services/*":          "update_service_env_template",
	"DELETE /v1/templates/:template/services":         "update_env_template",
	"DELETE /v1/templates/:template/services/*":       "update_env_template",

	"GET /v1/schemas/:class":          "get_schema",
	"GET /v1/schemas/:class/:methods": "get_schema",
	"GET /v1/stats":                   "default",

	"GET /v1/environments/:environment/instance-statistics/raw":           "get_instance_statistics",
	"GET /v1/environments/:environment/instance-statistics/raw/:instance": "get_instance_statistics",
	"GET /v1/environments/:environment/instance-statistics/aggregated":    "get_aggregated_statistics",

	"GET /v1/catalog/packages":                   "get_package",
	"POST /v1/catalog/packages":                  "upload_package",
	"GET /v1/catalog/packages/:id":               "get_package",
	"PATCH /v1/catalog/packages/:id":             "modify_package",
	"DELETE /v1/catalog/packages/:id":            "delete_package",
	"GET /v1/catalog/packages/:id/ui":            "get_package",
	"GET /v1/catalog/packages/:id/logo":          "get_package",
	"GET /v1/catalog/packages/:id/supplier_logo": "get_package",
	"GET /v1/catalog/packages/:id/download":      "download_package",
	"GET /v1/catalog/categories":                 "get_category",
	"POST /v1/catalog/categories":                "add_category",
	"GET /v1/catalog/categories/:id":             "get_category",
	"DELETE /v1/catalog/categories/:id":          "delete_category",

	"GET /burano/v1/deployments/:deployment":                                "statuses_deployments",
	"GET /burano/v1/deployments/:deployment/progress":                       "statuses_deployments",
	"GET /burano/v1/environments/:environment/reports":                      "statuses_deployments",
	"GET /burano/v1/deployments/:deployment/steps":                          "statuses_deployments",
	"GET /burano/v1/deployments/:deployment/events":                         "statuses_deployments",
	"POST /burano/v1/deployments/:deployment/cancel":                        "update_environment",
	"POST /burano/v1/deployments/:deployment/retry":                         "update_environment",
	"GET /burano/v1/environments/:environment/sessions":                     "show_environment",
	"GET /burano/v1/environments/:environment/sessions/:session/preview":    "show_environment",
	"GET /burano/v1/environments/:environment/history":                      "show_environment",
	"GET /burano/v1/environments/:environment/history/:state":               "show_environment",
	"GET /burano/v1/environments/:environment/history/:state/changes":       "show_environment",
	"POST /burano/v1/environments/:environment/history/:state/session":      "update_environment",
	"POST /burano/v1/environments/:environment/discard":                     "update_environment",
	"GET /burano/v1/environments/:environment/export":                       "show_environment",
	"POST /burano/v1/environments/:environment/export":                      "update_environment",
	"POST /burano/v1/preview":                                               "create_environment",
	"POST /burano/v1/templates/:template/preview":                           "update_service_env_template",
	"GET /burano/v1/environments/:environment/deletion":                     "show_environment",
	"GET /burano/v1/environments/:environment/delegation":                   "show_environment",
	"PUT /burano/v1/environments/:environment/delegation":                   "delegate_environment",
	"DELETE /burano/v1/environments/:environment/delegation":                "delegate_environment",
	"GET /burano/v1/environments/:environment/hibernation":                  "show_environment",
	"GET /burano/v1/environments/:environment/hibernation/preview":          "show_environment",
	"PUT /burano/v1/environments/:environment/hibernation/schedule":         "execute_action",
	"DELETE /burano/v1/environments/:environment/hibernation/schedule":      "execute_action",
	"POST /burano/v1/environments/:environment/hibernate":                   "execute_action",
	"POST /burano/v1/environments/:environment/wake":                        "execute_action",
	"GET /burano/v1/deleted-environments":                                   "list_environments",
	"POST /burano/v1/deleted-environments/:deleted/undelete":                "create_environment",
	"DELETE /burano/v1/deleted-environments/:deleted":                       "delete_environment",
	"GET /burano/v1/findings":                                               "list_environments",
	"GET /burano/v1/environments":                                           "list_environments",
	"GET /burano/v1/environments/:environment/components":                   "show_environment",
	"GET /burano/v1/environments/:environment/findings":                     "show_environment",
	"GET /burano/v1/classes":                                                "get_package",
	"GET /burano/v1/needs":                                                  "get_package",
	"GET /burano/v1/packages":                                               "get_package",
	"GET /burano/v1/packages/:package":                                      "get_package",
	"PUT /burano/v1/packages/:package":                                      "upload_package",
	"GET /burano/v1/environments/:environment/objects":                      "show_environment",
	"GET /burano/v1/classes/:class/actions":                                 "get_schema",
	"PUT /burano/v1/cloud/images/:image/mark":                               "mark_image",
	"DELETE /burano/v1/cloud/images/:image/mark":                            "remove_image_metadata",
	"GET /burano/v1/projects":                                               "list_projects",
	"GET /burano/v1/projects/:project/role":                                 "get_project_role",
	"PUT /burano/v1/projects/:project/role":                                 "set_project_role",
	"DELETE /burano/v1/projects/:project/role":                              "set_project_role",
	"GET /burano/v1/doctor":                                                 "examine_cloud",
	"GET /burano/v1/version":                                                "default",
	"GET /burano/v1/cloud/:kind":                                            "ask_cloud",
	"GET /burano/v1/audit":                                                  "list_audit_events",
	"GET /burano/v1/profiles/:profile":                                      "get_profiles",
	"GET /burano/v1/quotas/:project":                                        "get_quotas",
	"PUT /burano/v1/quotas/:project":                                        "set_quotas",
	"DELETE /burano/v1/quotas/:project":                                     "set_quotas",
	"GET /burano/v1/applied/:project/:label":                                "list_environments",
	"PUT /burano/v1/applied/:project/:label":                                "update_environment",
	"GET /burano/v1/session":                                                "default",
	"GET /burano/v1/session/projects":                                       "default",
	"PUT /burano/v1/session/project":                                        "default",
	"GET /burano/v1/forms/:package":                                         "get_package",
	"POST /burano/v1/forms/:package":                                        "get_package",
	"GET /burano/v1/environments/:environment/components/:component/form":   "show_environment",
	"POST /burano/v1/environments/:environment/components/:component/form":  "show_environment",
	"PUT /burano/v1/environments/:environment/components/:component/form":   "update_environment",
	"GET /burano/v1/environments/:environment/clusters/:cluster":            "show_environment",
	"GET /burano/v1/environments/:environment/clusters/:cluster/traffic":    "show_environment",
	"GET /burano/v1/environments/:environment/clusters/:cluster/kubeconfig": ruleReaders, // and a larger request needs more rights
	"GET /burano/v1/environments/:environment/clusters/:cluster/credential": ruleReaders,

	"GET /burano/v1/environments/:environment/clusters/:cluster/ssh-key":           "show_environment",
	"PUT /burano/v1/environments/:environment/clusters/:cluster/ssh-keys/:node":    "execute_action",
	"DELETE /burano/v1/environments/:environment/clusters/:cluster/ssh-keys/:node": "execute_action",

	"POST /burano/v1/environments/:environment/clusters/:cluster/join-tokens":          "execute_action",
	"GET /burano/v1/environments/:environment/clusters/:cluster/join-tokens":           "show_environment",
	"DELETE /burano/v1/environments/:environment/clusters/:cluster/join-tokens/:token": "execute_action",

	"GET /burano/v1/environments/:environment/clusters/:cluster/upgrade":        "show_environment",
	"POST /burano/v1/environments/:environment/clusters/:cluster/upgrade/pause": "execute_action",

	"POST /burano/v1/environments/:environment/clusters/:cluster/snapshots": "execute_action",
	"GET /burano/v1/snapshots":                   "list_environments",
	"GET /burano/v1/snapshots/:snapshot":         "show_environment",
	"GET /burano/v1/snapshots/:snapshot/content": "get_kubeconfig",
	"DELETE /burano/v1/snapshots/:snapshot":      "update_environment",

	"POST /burano/v1/environments/:environment/backups":            "execute_action",
	"GET /burano/v1/environments/:environment/backups/preview":     "show_environment",
	"GET /burano/v1/environments/:environment/backups/schedule":    "show_environment",
	"PUT /burano/v1/environments/:environment/backups/schedule":    "update_environment",
	"DELETE /burano/v1/environments/:environment/backups/schedule": "update_environment",
	"GET /burano/v1/backups":                                       "list_environments",
	"GET /burano/v1/backups/:backup":                               "show_environment",
	"DELETE /burano/v1/backups/:backup":                            "update_environment",
	"GET /burano/v1/environments/:environment/backups/drills":      "show_environment",
	"POST /burano/v1/backups/:backup/drill":                        "create_environment",
	"POST /burano/v1/backups/:backup/restore":                      "create_environment",
	"POST /burano/v1/backups/:backup/file":                         "update_environment",
	"POST /burano/v1/backups/file":                                 "create_environment",

	"GET /burano/v1/environments/:environment/clusters/:cluster/nodes/:node":           "show_environment",
	"GET /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/labels":    "show_environment",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/labels":   "execute_action",
	"DELETE /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/labels": "execute_action",
	"GET /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/taints":    "show_environment",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/taints":   "execute_action",
	"DELETE /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/taints": "execute_action",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/cordon":   "execute_action",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/uncordon": "execute_action",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/lock":     "execute_action",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/unlock":   "execute_action",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/reboot":   "execute_action",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/swact":    "execute_action",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/replace":  "execute_action",

	"GET /burano/v1/environments/:environment/clusters/:cluster/running":                         "show_environment",
	"GET /burano/v1/environments/:environment/clusters/:cluster/pods/:namespace/:pod":            "show_environment",
	"GET /burano/v1/environments/:environment/clusters/:cluster/pods/:namespace/:pod/log":        "get_pod_log",
	"GET /burano/v1/environments/:environment/clusters/:cluster/pods/:namespace/:pod/log/events": "get_pod_log",
	"POST /burano/v1/environments/:environment/clusters/:cluster/pods/:namespace/:pod/recreate":  "update_workload",

	"GET /burano/v1/environments/:environment/clusters/:cluster/workloads/:namespace/:kind/:workload":          "show_environment",
	"PUT /burano/v1/environments/:environment/clusters/:cluster/workloads/:namespace/:kind/:workload/scale":    "update_workload",
	"POST /burano/v1/environments/:environment/clusters/:cluster/workloads/:namespace/:kind/:workload/restart": "update_workload",
}

// open are the paths that are answered to any caller.
var open = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true, "/openapi.json": true}

// signingIn are the routes that unknown callers may call, in addition to the paths that are open.
var signingIn = map[string]bool{"POST /burano/v1/session": true, "DELETE /burano/v1/session": true, "GET /burano/v1/session/providers": true,
	"POST " + auth.WebSSOPath: true}

// joining are the routes of machines, whose only credential is a join token.
var joining = map[string]bool{"POST " + joinPath: true, "POST " + joinPath + "/deployment": true, "GET " + joinPath: true}

// anonymous reports whether a request, or a route, is answered without a caller.
func anonymous(method, path string) bool {
	return open[path] || signingIn[method+" "+path] || joining[method+" "+path] || method == http.MethodPost && strings.HasPrefix(path, auth.WebSSOPath+"/")
}

// withoutProject are the routes for callers that have signed in and have not chosen a project yet.
var withoutProject = map[string]bool{"GET /burano/v1/session": true, "GET /burano/v1/session/projects": true, "PUT /burano/v1/session/project": true}

// checkRules makes it impossible to forget the rule of a new route.
func checkRules(routes []*echo.Route, policy *policy.Policy) {
	for _, route := range routes {
		if route.Method == echo.RouteNotFound || anonymous(route.Method, route.Path) {
			continue
		}
		name := route.Method + " " + route.Path
		if rule, there := rules[name]; !there || !policy.Known(rule) {
			panic(fmt.Sprintf("the route %s needs a rule of the policy: name one in web/api/rules.go", name))
		}
	}
}

// denied is Murano's answer to a caller that does not pass a rule.
var denied = fault.New(fault.Forbidden, "Access was denied to this resource.")

// permitted demands that the caller passes the rule of the route, and gives the services the caller's other rights.
func permitted(policy *policy.Policy) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			request := c.Request()
			caller := policy.Apply(identity.From(request.Context()))
			route := request.Method + " " + c.Path()
			if caller.UserID != "" && caller.ProjectID == "" && !withoutProject[route] {
				return fault.New(fault.Forbidden, "You are signed in, and work in no project yet: choose one by PUT /burano/v1/session/project")
			}
			rule, there := rules[route]
			if there && !policy.Allows(rule, caller, target(c)) {
				return denied
			}
			c.SetRequest(request.WithContext(identity.With(request.Context(), caller)))
			return next(c)
		}
	}
}

// target is the object of the request: "environment_id" for the path's ":environment", and so on.
func target(c echo.Context) map[string]string {
	attributes := map[string]string{}
	for _, name := range c.ParamNames() {
		switch {
		case name == "*":
		case name != "id":
			attributes[name+"_id"] = c.Param(name)
		case strings.HasPrefix(c.Path(), "/v1/catalog/categories/"):
			attributes["category_id"] = c.Param(name)
		default:
			attributes["package_id"] = c.Param(name)
		}
	}
	return attributes
}
