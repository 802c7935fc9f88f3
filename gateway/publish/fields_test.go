package publish_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/nginx"
)

// fieldsOf lists the fields of a type by their paths, as kubectl explain has them.
func fieldsOf(of reflect.Type, path string) (list []string) {
	switch of {
	case reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[core.ObjectReference](), reflect.TypeFor[core.TypedLocalObjectReference](), reflect.TypeFor[meta.ObjectMeta](), reflect.TypeFor[meta.TypeMeta]():
		return []string{path}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return fieldsOf(of.Elem(), path)
	case reflect.Slice:
		return fieldsOf(of.Elem(), path+"[]")
	case reflect.Struct:
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name == "metadata" || name == "" && of.Field(i).Type == reflect.TypeFor[meta.TypeMeta]() {
				continue
			}
			inner := path
			if name != "" {
				inner += "." + name
			}
			list = append(list, fieldsOf(of.Field(i).Type, inner)...)
		}
		return list
	}
	return []string{path}
}

// annotations are the values of the constants of the package whose names begin so.
func annotations(t *testing.T) (list []string) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, is := node.(*ast.ValueSpec)
			if !is {
				return true
			}
			for i, name := range spec.Names {
				if i < len(spec.Values) && strings.HasPrefix(strings.ToLower(name.Name), "annotation") {
					if literal, is := spec.Values[i].(*ast.BasicLit); is {
						text, err := strconv.Unquote(literal.Value)
						require.NoError(t, err)
						list = append(list, text)
					}
				}
			}
			return true
		})
	}
	return list
}

func TestTheBookHasEveryFieldThatGatewaysServeOrDoNot(t *testing.T) {
	kinds := map[string][]string{"EndpointSlice": fieldsOf(reflect.TypeFor[discovery.EndpointSlice](), ""), "annotation": append(annotations(t), nginx.AnnotationIgnore)}
	for kind, spec := range map[string]reflect.Type{
		"Service": reflect.TypeFor[core.ServiceSpec](), "Ingress": reflect.TypeFor[networking.IngressSpec](), "GatewayClass": reflect.TypeFor[api.GatewayClassSpec](),
		"Gateway": reflect.TypeFor[api.GatewaySpec](), "ListenerSet": reflect.TypeFor[api.ListenerSetSpec](), "HTTPRoute": reflect.TypeFor[api.HTTPRouteSpec](),
		"GRPCRoute": reflect.TypeFor[api.GRPCRouteSpec](), "TCPRoute": reflect.TypeFor[api.TCPRouteSpec](), "TLSRoute": reflect.TypeFor[api.TLSRouteSpec](), "UDPRoute": reflect.TypeFor[api.UDPRouteSpec](),
		"BackendTLSPolicy": reflect.TypeFor[api.BackendTLSPolicySpec](), "ReferenceGrant": reflect.TypeFor[api.ReferenceGrantSpec](),
	} {
		kinds[kind] = fieldsOf(spec, "")
	}
	missing := make(map[string]bool)
	for kind, fields := range kinds {
		for _, field := range fields {
			missing[kind+" "+strings.TrimPrefix(field, ".")] = true
		}
	}
	require.Greater(t, len(missing), 200)
	book, err := os.ReadFile(filepath.Join("..", "..", "docs", "publishing.md"))
	require.NoError(t, err)
	_, chapter, found := strings.Cut(string(book), "\n## Every field\n")
	require.True(t, found)
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	quoted := func(text string) (names []string) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
			names = append(names, name[1])
		}
		return names
	}
	var of []string
	told := make(map[string]bool)
	for line := range strings.Lines(chapter) {
		if strings.HasPrefix(line, "| of ") {
			of = quoted(line)
			continue
		}
		cells := strings.Split(line, " | ")
		if len(cells) < 2 || !strings.HasPrefix(line, "| `") {
			continue
		}
		require.NotEmpty(t, strings.Trim(cells[1], " |\n"), line)
		for _, name := range quoted(cells[0]) {
			some := false
			for _, kind := range of {
				// A part that is refused as a whole ends with an asterisk.
				if prefix, whole := strings.CutSuffix(name, "*"); whole {
					for field := range missing {
						if strings.HasPrefix(field, kind+" "+prefix) {
							some = true
							delete(missing, field)
						}
					}
					continue
				}
				require.False(t, told[kind+" "+name], "%s of a %s is there twice", name, kind)
				if field := kind + " " + name; missing[field] {
					some, told[field] = true, true
					delete(missing, field)
				}
			}
			require.True(t, some, "%s is no field of a %s", name, strings.Join(of, ", "))
		}
	}
	require.Empty(t, slices.Sorted(maps.Keys(missing)), "docs/publishing.md says of each field what gateways do with it: serve it, or say in an Event or a condition that they do not")
}
