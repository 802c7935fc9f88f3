package execution

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/orchestrator/execution/body"
)

//go:embed scripts/download.sh
var downloadScript string

// download is a line that gets a file into its place in the script's folder.
func download(one file, kind string) string {
	how := "file"
	lower := strings.ToLower(one.url)
	archive := false
	for _, suffix := range []string{".tar.gz", ".tgz", ".tar", ".tar.bz2", ".tar.xz", ".zip"} {
		archive = archive || strings.HasSuffix(lower, suffix)
	}
	switch {
	case strings.HasPrefix(lower, "git://"), strings.HasPrefix(lower, "git+"), strings.HasSuffix(lower, ".git"):
		how = "git"
	case strings.HasPrefix(lower, "svn://"), strings.Contains(lower, "/svn/"):
		how = "svn"
	case kind != typeApplication && archive:
		how = "archive" // a cookbook or module is a folder
	case kind != typeApplication:
		how = "git"
	}
	return fmt.Sprintf("\nget %s %s %s", how, quote(strings.TrimPrefix(one.url, "git+")), quote(one.name))
}

// quote makes one shell word of any text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// recipe is a cookbook or module, and the part of it to run.
var recipe = regexp.MustCompile(`^([A-Za-z0-9_.-]+)::([A-Za-z0-9_:.-]*)$`)

// command is the command line of a script. The arguments of an Application are the rest of a shell's line, as in Murano; the arguments of Chef and Puppet
// are a dict of attributes.
func (x *execution) command(name string, s script, args []any, named map[string]any) (command, error) {
	var first any
	if len(args) > 0 {
		first = args[0]
	}
	c := command{name: name, folder: path.Join("work", name)}
	if s.kind == typeApplication {
		if first == nil {
			first = named["commandline"]
		}
		entry := x.plan.files[s.entry].name
		c.folder = path.Join(c.folder, path.Dir(entry))
		line := ""
		if first != nil || len(args) > 0 {
			line = " " + body.Text(first)
		}
		program := "./" + quote(path.Base(entry))
		c.text = "chmod u+rx " + program + "\n" + program + line
		return c, nil
	}
	attributes, _ := first.(map[string]any)
	if attributes == nil && len(named) > 0 {
		attributes = named
	}
	parts := recipe.FindStringSubmatch(s.entry)
	if s.kind == typeChef {
		return x.chef(c, s, parts[1], parts[2], attributes)
	}
	return puppet(c, parts[1], parts[2], attributes)
}

func (x *execution) chef(c command, s script, cookbook, recipe string, attributes map[string]any) (command, error) {
	node := map[string]any{"run_list": []string{"recipe[" + cookbook + "::" + recipe + "]"}}
	if len(attributes) > 0 {
		node[cookbook] = attributes
	}
	text, err := json.Marshal(node)
	if err != nil {
		return c, fmt.Errorf("the attributes of recipe %s: %w", s.entry, err)
	}
	cookbooks := "."
	if s.berkshelf {
		berksfile := s.berksfilePath
		if berksfile == "" {
			berksfile = path.Join(cookbook, "Berksfile")
		}
		cookbooks = "berks-cookbooks"
		c.text = "berks vendor --berksfile=" + quote(berksfile) + " " + cookbooks + " || exit\n"
	}
	c.text += "chef-solo -j node.json -c solo.rb"
	solo := fmt.Sprintf("cookbook_path File.expand_path(%q, __dir__)\n", cookbooks)
	c.files = []entry{{path.Join(c.folder, "node.json"), 0o600, text}, {path.Join(c.folder, "solo.rb"), 0o600, []byte(solo)}}
	return c, nil
}

func puppet(c command, module, class string, attributes map[string]any) (command, error) {
	if class != "" {
		class = module + "::" + class
	} else {
		class = module
	}
	values := map[string]any{}
	for name, value := range attributes {
		values[module+"::"+name] = value
	}
	data, err := yaml.Marshal(values)
	if err != nil {
		return c, fmt.Errorf("the attributes of class %s: %w", class, err)
	}
	c.files = []entry{
		{path.Join(c.folder, "manifest.pp"), 0o600, []byte("node default { class { '" + class + "': } }\n")},
		{path.Join(c.folder, "hiera.yaml"), 0o600, []byte("version: 5\ndefaults:\n  datadir: .\n  data_hash: yaml_data\nhierarchy:\n  - name: default\n    path: default.yaml\n")},
		{path.Join(c.folder, "default.yaml"), 0o600, data},
	}
	c.text = "puppet apply --hiera_config=hiera.yaml --modulepath . manifest.pp"
	return c, nil
}
