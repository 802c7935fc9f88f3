package golden

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Deployment is an environment that was deployed in a replay and still exists.
type Deployment struct {
	Environment string         // its id
	Model       map[string]any // as the server returns it
}

// ServersAnswerAsRecorded replays the recording of an application with a server, and of a Heat template, on a Burano with a whole cloud
// in a region of this name. It passes each deployment to the function before it deletes it.
func ServersAnswerAsRecorded(t testing.TB, replay *Replay, region string, stands func(Deployment)) {
	s := &target{Replay: replay, t: t}
	s.serversAnswer(region, stands)
	s.heatTemplatesAnswer(stands)
}

func (s *target) serversAnswer(region string, stands func(Deployment)) {
	list, err := Recorded("vm")
	require.NoError(s.t, err)
	environment, compared := "", 0
	for _, e := range list {
		if e.Name == "vm-env-delete" {
			stands(Deployment{environment, s.call("{token:demo}", "GET", "/v1/environments/"+environment+"/model/", "", nil)})
		}
		e.ResponseBody = cloudShape(e.ResponseBody, "RegionOne")
		response, body, err := s.Send(s.t.Context(), e)
		require.NoError(s.t, err)
		var here any
		if json.Unmarshal(body, &here) == nil {
			here = cloudShape(here, region)
			body, err = json.Marshal(here)
			require.NoError(s.t, err)
		}
		said := s.Compare(e, response, body)
		if exception, there := serverExceptions[e.Name]; there {
			if said == "" {
				s.t.Errorf("%s is no exception any more", e.Name)
			}
			body, err = json.Marshal(exception.change(here))
			require.NoError(s.t, err)
			said = s.Compare(e, response, body)
		}
		if said != "" {
			s.t.Errorf("%s: %s %s: %s", e.Name, e.Method, e.Path, said)
		}
		compared++
		switch made, _ := here.(map[string]any); e.Name {
		case "vm-env-create":
			environment, _ = made["id"].(string)
		case "vm-deploy", "vm-env-delete":
			s.ended(environment)
		}
	}
	s.t.Logf("replayed %d exchanges of an application with a server", compared)
}

// serverExceptions are the exchanges with another answer of Burano's, each with its reason, and the change that turns the answer into
// the recorded one.
var serverExceptions = map[string]struct {
	reason string
	change func(any) any
}{
	"vm-deployment-statuses": {"the recorded Murano lost what classes report", withoutOwnReports},
	"vm-laststatus":          {"the recorded Murano lost what classes report", withoutOwnReports},
}

// heatTemplatesAnswer deploys the recorded Heat template in an environment of its own; the recorded environment has other
// applications, too.
func (s *target) heatTemplatesAnswer(stands func(Deployment)) {
	list, err := Recorded("package", "services", "env")
	require.NoError(s.t, err)
	named := func(name string) Exchange {
		return list[slices.IndexFunc(list, func(e Exchange) bool { return e.Name == name })]
	}
	send := func(e Exchange) {
		response, body, err := s.Send(s.t.Context(), e)
		require.NoError(s.t, err)
		if said := s.Compare(e, response, body); said != "" {
			s.t.Errorf("%s: %s", e.Name, said)
		}
	}
	send(named("package-upload-hot"))
	post := named("services-post-hot")
	environment := s.call("{token:demo}", "POST", "/v1/environments", "application/json", []byte(`{"name": "golden-hot"}`))["id"].(string)
	session := s.call("{token:demo}", "POST", "/v1/environments/"+environment+"/configure", "application/json", nil)["id"].(string)
	s.IDs[strings.Split(post.Path, "/")[3]], s.IDs[post.RequestHeaders["X-Configuration-Session"]] = environment, session
	send(post)
	send(Exchange{Name: "deploy of the Heat template", Method: http.MethodPost, RequestHeaders: post.RequestHeaders, Status: http.StatusOK,
		Path: "/v1/environments/" + environment + "/sessions/" + session + "/deploy"})
	s.ended(environment)

	recorded := named("env-show-deployed-2").ResponseBody.(map[string]any)["services"].([]any)
	heat := recorded[slices.IndexFunc(recorded, func(item any) bool { return item.(map[string]any)["name"] == "hot one" })]
	here := s.call("{token:demo}", "GET", "/v1/environments/"+environment, "", nil)["services"].([]any)[0]
	for _, object := range []any{heat, here} {
		outputs := object.(map[string]any)["templateOutputs"].(map[string]any)
		outputs["value"] = float64(len(outputs["value"].(string))) // it is random
	}
	text, err := json.Marshal(here)
	require.NoError(s.t, err)
	if said := s.IDs.difference(heat, text); said != "" {
		s.t.Errorf("the deployed Heat template: %s", said)
	}
	stands(Deployment{environment, s.call("{token:demo}", "GET", "/v1/environments/"+environment+"/model/", "", nil)})
	send(Exchange{Name: "deletion of the Heat template", Method: http.MethodDelete, Path: "/v1/environments/" + environment,
		RequestHeaders: map[string]string{"X-Auth-Token": "{token:demo}"}, Status: http.StatusOK})
	s.ended(environment)
}

// ended waits until no task runs in the environment, or it is gone.
func (s *target) ended(environment string) {
	show := Exchange{Method: http.MethodGet, Path: "/v1/environments/" + environment, RequestHeaders: map[string]string{"X-Auth-Token": "{token:demo}"}}
	require.Eventually(s.t, func() bool {
		response, body, err := s.Send(s.t.Context(), show)
		require.NoError(s.t, err)
		var shown struct {
			Status string `json:"status"`
		}
		return response.StatusCode == http.StatusNotFound || json.Unmarshal(body, &shown) == nil && shown.Status != "deploying" && shown.Status != "deleting"
	}, 3*time.Minute, 50*time.Millisecond)
}

var isUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// cloudShape replaces the values of a cloud by their shapes: ids, addresses, subnets, and the name of its region.
func cloudShape(value any, region string) any {
	address := func(one any) any {
		if text, ok := one.(string); ok {
			if _, err := netip.ParseAddr(text); err == nil {
				return "<address>"
			}
		}
		return one
	}
	return each(value, func(object map[string]any) {
		for key, one := range object {
			text, _ := one.(string)
			switch key {
			case "openstackId", "externalRouterId":
				if isUUID.MatchString(text) {
					object[key] = "<uuid>"
				}
			case "floatingIpAddress":
				object[key] = address(one)
			case "ipAddresses", "ipList":
				list, _ := one.([]any)
				for i := range list {
					list[i] = address(list[i])
				}
			case "subnetCidr":
				if prefix, err := netip.ParsePrefix(text); err == nil {
					object[key] = fmt.Sprintf("</%d>", prefix.Bits())
				}
			case "region", "regionName", "name":
				if text == region {
					object[key] = "<region>"
				}
			case region:
				delete(object, key)
				object["<region>"] = one
			}
		}
	})
}

// withoutOwnReports removes reports of classes.
func withoutOwnReports(value any) any {
	return each(value, func(object map[string]any) {
		if reports, ok := object["reports"].([]any); ok {
			object["reports"] = slices.DeleteFunc(reports, func(report any) bool {
				text, _ := report.(map[string]any)["text"].(string)
				return text != "Action deploy is scheduled" && text != "Deployment finished"
			})
		}
		if statuses, ok := object["lastStatuses"].(map[string]any); ok {
			for id := range statuses {
				statuses[id] = nil
			}
		}
	})
}

// each calls do for each object in a value.
func each(value any, do func(object map[string]any)) any {
	switch v := value.(type) {
	case map[string]any:
		do(v)
		for _, element := range v {
			each(element, do)
		}
	case []any:
		for _, element := range v {
			each(element, do)
		}
	}
	return value
}
