package catalog_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
)

func TestImagesThatAPackageNeeds(t *testing.T) {
	whole := catalog.Image{Name: "linux", DiskFormat: "qcow2", ContainerFormat: "bare"}
	full := catalog.Image{Name: "debian", DiskFormat: "raw", ContainerFormat: "bare", URL: "https://example.org/d.raw", Hash: "12", Info: `{"title":"Debian","type":"linux"}`}
	for name, c := range map[string]struct {
		text   string
		images []catalog.Image
		wrong  []string
	}{
		"none":       {"Images:\n", nil, nil},
		"empty":      {"", nil, nil},
		"no list":    {"other: 1\n", nil, nil},
		"one":        {"Images:\n- {Name: linux, DiskFormat: qcow2, ContainerFormat: bare, Url: }\n", []catalog.Image{whole}, nil},
		"all":        {"Images:\n- Name: debian\n  Hash: 12\n  DiskFormat: raw\n  ContainerFormat: bare\n  Url: https://example.org/d.raw\n  Meta: {type: linux, title: Debian}\n", []catalog.Image{full}, nil},
		"no YAML":    {"Images: [", nil, []string{"1:1: this is no YAML: "}},
		"a list":     {"- Name: a\n", nil, []string{"1:1: it should be a map with the key Images"}},
		"a text":     {"Images: linux\n", nil, []string{"1:9: Images should be a list of maps with Name, DiskFormat and ContainerFormat"}},
		"of texts":   {"Images: [linux]\n", nil, []string{"1:10: an image should be a map with Name, DiskFormat and ContainerFormat"}},
		"without":    {"Images:\n- {Name: a}\n", nil, []string{"2:3: an image needs a DiskFormat", "2:3: an image needs a ContainerFormat"}},
		"odd values": {"Images:\n- {Name: [], DiskFormat: raw, ContainerFormat: bare, Meta: x}\n", nil, []string{"2:10: Name should be a text", "2:60: Meta should be a map", "2:3: an image needs a Name"}},
		"more":       {"Images:\n- {Name: linux, DiskFormat: qcow2, ContainerFormat: bare, Size: 3}\n", []catalog.Image{whole}, []string{"2:59: an image has no Size; known are Name, "}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := catalog.ReadFolder(fstest.MapFS{"manifest.yaml": {Data: []byte("Type: Library\nFullName: a.b\n")}, "images.lst": {Data: []byte(c.text)}})
			require.NoError(t, err, "the catalog takes a package whatever its list of images")
			images, problems := p.Images()
			require.Equal(t, c.images, images)
			require.Len(t, problems, len(c.wrong), "%v", problems)
			for i, problem := range problems {
				said := fmt.Sprintf("%s:%d:%d: %v", problem.File, problem.Line, problem.Column, problem)
				require.True(t, strings.HasPrefix(said, "images.lst:"+c.wrong[i]), said)
			}
		})
	}
}
