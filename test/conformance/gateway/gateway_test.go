// Package gateway runs Gateway API's own conformance suite on an existing cluster. `make conformance-gateway` starts one for it.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	api "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// project is Burano's address in a report.
const project = "https://github.com/burano/burano"

// unusable is an address that no gateway has (RFC 5737).
const unusable = "192.0.2.1"

// TestConformance runs the tests of all features that the class claims in its status. KUBECONFIG leads to the cluster, BURANO_ADDRESSES names the
// addresses of its three gateways, between commas, and BURANO_RESULTS a folder for the suite's report and for a summary. A test that fails, and one
// that is skipped though the class claims its features, fail it.
func TestConformance(t *testing.T) {
	folder := os.Getenv("BURANO_RESULTS")
	if folder == "" {
		t.Skip("`make conformance-gateway` brings up a cluster for this")
	}
	addresses := strings.Split(os.Getenv("BURANO_ADDRESSES"), ",")
	require.Len(t, addresses, 3, "BURANO_ADDRESSES names the addresses of three gateways")
	slices.Sort(addresses) // as statuses have them

	options := conformance.DefaultOptions(t)
	options.GatewayClassName = "burano"
	options.ConformanceProfiles = []suite.ConformanceProfileName{suite.GatewayHTTPConformanceProfileName, suite.GatewayGRPCConformanceProfileName, suite.GatewayTCPConformanceProfileName, suite.GatewayTLSConformanceProfileName, suite.GatewayUDPConformanceProfileName}
	kind := api.IPAddressType
	options.UsableNetworkAddresses = []api.GatewaySpecAddress{{Type: &kind, Value: addresses[0]}}
	options.UnusableNetworkAddresses = []api.GatewaySpecAddress{{Type: &kind, Value: unusable}}
	options.ReportOutputPath = filepath.Join(folder, "report.yaml")
	options.Implementation.Organization, options.Implementation.Project = "burano", "burano"
	options.Implementation.URL, options.Implementation.Contact = project, []string{project}
	options.Implementation.Version = cmp.Or(os.Getenv("BURANO_VERSION"), "unknown")

	separate(t, options.Client, addresses)
	var r results
	options.Hook = r.note
	// Parallel tests of the suite end after this function. The clean-up runs when all have ended.
	t.Cleanup(func() {
		summary := r.summary()
		t.Log(summary)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "summary.txt"), []byte(summary), 0o644))
		require.NoError(t, r.complete())
	})
	conformance.RunConformanceWithOptions(t, options)
}

// separate serves some Gateways of the suite at one of the addresses. Gateways of one cluster share all addresses unless they name some, and the
// suite takes for granted that Gateways with other routes for the same requests do not. Its manifests have no place for that, so an admission policy
// of the cluster adds the addresses. All other Gateways stay as they are.
func separate(t *testing.T, c client.Client, addresses []string) {
	at := map[string]string{
		// HTTPRouteMultipleGateways has routes for the same requests on both.
		"same-namespace": addresses[0],
		"all-namespaces": addresses[1],
		// Its listener without a hostname is always there, and accepts sessions for names that tests of TLSRoutes expect to be refused.
		"same-namespace-with-https-listener": addresses[2],
		// TLSRouteHostnameIntersection adds names to it that its other Gateways must refuse.
		"gw-tlsroute-empty-hostname-x-4": addresses[1],
		// Their requests without a route must not reach routes of other Gateways for any host.
		"http-listener-isolation":                            addresses[2],
		"http-listener-isolation-with-hostname-intersection": addresses[2],
		// These check the clients of port 443 in three ways.
		"client-validation-default":                   addresses[0],
		"gateway-with-invalid-client-cert-validation": addresses[0],
		"invalid-default-client-validation-config":    addresses[0],
		"client-validation-insecure-fallback":         addresses[1],
	}
	// Others serve HTTPS on that port without a check, at the address of the first one above.
	for _, name := range []string{
		"gateway-add-listener", "gateway-remove-listener", "gateway-secret-reference-grant-all-in-namespace", "gateway-secret-reference-grant-specific", "gateway-tlsroute-https-only",
		"gateway-with-listener-sets-test-reference-grant", "unresolved-gateway-with-one-attached-unresolved-route",
	} {
		at[name] = at["same-namespace-with-https-listener"]
	}
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(at)) {
		entries = append(entries, fmt.Sprintf("%q: %q", name, at[name]))
	}
	list := "{" + strings.Join(entries, ", ") + "}"
	fail, never := admission.Fail, admission.NeverReinvocationPolicy
	named := meta.ObjectMeta{Name: "burano-conformance-addresses"}
	create := func(object client.Object) {
		require.NoError(t, c.Create(t.Context(), object))
		t.Cleanup(func() { require.NoError(t, c.Delete(context.WithoutCancel(t.Context()), object)) })
	}
	create(&admission.MutatingAdmissionPolicy{ObjectMeta: named, Spec: admission.MutatingAdmissionPolicySpec{
		MatchConstraints: &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
			Operations: []admission.OperationType{admission.Create, admission.Update},
			Rule:       admission.Rule{APIGroups: []string{api.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"gateways"}},
		}}}},
		MatchConditions: []admission.MatchCondition{{Name: "one-of-these", Expression: "object.metadata.name in " + list}},
		Mutations: []admission.Mutation{{PatchType: admission.PatchTypeJSONPatch, JSONPatch: &admission.JSONPatch{
			Expression: `[JSONPatch{op: "add", path: "/spec/addresses", value: [{"type": "IPAddress", "value": ` + list + `[object.metadata.name]}]}]`,
		}}},
		FailurePolicy: &fail, ReinvocationPolicy: never,
	}})
	create(&admission.MutatingAdmissionPolicyBinding{ObjectMeta: named, Spec: admission.MutatingAdmissionPolicyBindingSpec{PolicyName: named.Name}})
	require.EventuallyWithT(t, func(now *assert.CollectT) {
		gateway := api.Gateway{ObjectMeta: meta.ObjectMeta{Name: "same-namespace", Namespace: "default"}, Spec: api.GatewaySpec{
			GatewayClassName: "burano", Listeners: []api.Listener{{Name: "http", Port: 80, Protocol: api.HTTPProtocolType}},
		}}
		require.NoError(now, c.Create(t.Context(), &gateway, client.DryRunAll))
		require.Len(now, gateway.Spec.Addresses, 1)
		require.Equal(now, addresses[0], gateway.Spec.Addresses[0].Value)
	}, time.Minute, 100*time.Millisecond, "the API server follows the policy")
}

// results are the results of the suite's tests.
type results struct {
	mutex          sync.Mutex
	claimed, tried map[features.FeatureName]bool // of the class; of tests that passed
	passed, failed []string
	skipped        map[features.FeatureName][]string // by the first unclaimed feature
	withoutAReason []string
}

// note records the result of a test.
func (r *results) note(t *testing.T, test suite.ConformanceTest, s *suite.ConformanceTestSuite) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.claimed == nil {
		r.claimed, r.tried, r.skipped = make(map[features.FeatureName]bool), make(map[features.FeatureName]bool), make(map[features.FeatureName][]string)
		for feature := range s.SupportedFeatures {
			r.claimed[feature] = true
		}
	}
	missing := slices.IndexFunc(test.Features, func(feature features.FeatureName) bool { return !r.claimed[feature] })
	switch {
	case t.Failed():
		r.failed = append(r.failed, test.ShortName)
	case t.Skipped() && missing >= 0:
		r.skipped[test.Features[missing]] = append(r.skipped[test.Features[missing]], test.ShortName)
	case t.Skipped():
		r.withoutAReason = append(r.withoutAReason, test.ShortName)
	default:
		r.passed = append(r.passed, test.ShortName)
		for _, feature := range test.Features {
			r.tried[feature] = true
		}
	}
}

// summary counts the passed tests and names the others.
func (r *results) summary() string {
	var text strings.Builder
	skipped := 0
	for _, tests := range r.skipped {
		skipped += len(tests)
	}
	fmt.Fprintf(&text, "%d passed, %d failed, %d skipped because the class does not claim their features, %d skipped for another reason\n", len(r.passed), len(r.failed), skipped, len(r.withoutAReason))
	list := func(title string, tests []string) {
		if len(tests) > 0 {
			fmt.Fprintf(&text, "%s: %s\n", title, strings.Join(slices.Sorted(slices.Values(tests)), ", "))
		}
	}
	list("passed", r.passed)
	list("failed", r.failed)
	list("skipped for another reason", r.withoutAReason)
	for _, feature := range slices.Sorted(maps.Keys(r.skipped)) {
		list(fmt.Sprintf("skipped, without %s", feature), r.skipped[feature])
	}
	return text.String()
}

// complete returns an error if a feature that the class claims was not tried.
func (r *results) complete() error {
	var problems []error
	if len(r.passed) == 0 {
		problems = append(problems, errors.New("no test has passed"))
	}
	if len(r.withoutAReason) > 0 {
		problems = append(problems, fmt.Errorf("skipped although the class claims their features: %s", strings.Join(r.withoutAReason, ", ")))
	}
	for _, feature := range slices.Sorted(maps.Keys(r.claimed)) {
		if !r.tried[feature] {
			problems = append(problems, fmt.Errorf("the class claims %s, and no test of it has passed", feature))
		}
	}
	return errors.Join(problems...)
}
