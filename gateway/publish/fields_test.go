package publish_test

import (
	"go/ast"
	"go/parser"
	"go/token"
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
	wanted := slices.Concat(fieldsOf(reflect.TypeFor[core.ServiceSpec](), "Service spec"), fieldsOf(reflect.TypeFor[networking.IngressSpec](), "Ingress spec"),
		fieldsOf(reflect.TypeFor[discovery.EndpointSlice](), "EndpointSlice"))
	for _, one := range annotations(t) {
		wanted = append(wanted, "annotation "+one)
	}
	require.Greater(t, len(wanted), 60)
	slices.Sort(wanted)
	book, err := os.ReadFile(filepath.Join("..", "..", "docs", "publishing.md"))
	require.NoError(t, err)
	_, chapter, found := strings.Cut(string(book), "\n## Every field\n")
	require.True(t, found)
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	var has []string
	var of string
	for line := range strings.Lines(chapter) {
		if head := regexp.MustCompile("^\\| of (an?|the) `([A-Za-z]+)` \\|").FindStringSubmatch(line); head != nil {
			of = head[2]
			continue
		}
		cells := strings.Split(line, " | ")
		if len(cells) < 2 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			switch of {
			case "EndpointSlice":
				has = append(has, "EndpointSlice."+name[1])
			case "annotation":
				has = append(has, "annotation "+name[1])
			default:
				has = append(has, of+" spec."+name[1])
			}
		}
		require.NotEmpty(t, strings.Trim(cells[1], " |\n"), line)
	}
	slices.Sort(has)
	require.Equal(t, slices.Compact(wanted), has, "docs/publishing.md says of each field what gateways do with it: serve it, or say in an Event and a condition that they do not")
}
