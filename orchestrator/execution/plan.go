// Package execution reads Murano's execution plans and runs them on servers, over SSH and without an agent.
//
// A plan is a body that calls scripts, with the files that these need. Build makes one of a template and a package's resources, as Murano's engine does;
// Parse reads one as Murano's agent does, and a Runner runs it.
package execution

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/burano/burano/orchestrator/execution/body"
)

// The types of scripts.
const (
	typeApplication = "Application"
	typeChef        = "Chef"
	typePuppet      = "Puppet"
)

// Limits of one plan.
const (
	maxScripts   = 200
	maxFiles     = 2_000
	maxPlanBytes = 64 << 20 // of all files
)

// Plan is a plan that was read.
type Plan struct {
	Name       string
	parameters map[string]any
	body       *body.Body
	scripts    map[string]script
	files      map[string]file // by id
	reboot     reboot
	content    []byte // the input of its digest
}

type script struct {
	kind, entry   string // entry is the id of a file, or a recipe
	files         []string
	captureOut    bool
	captureErr    bool
	verify        bool
	afterReboot   bool // runs again when a reboot has interrupted it
	berkshelf     bool
	berksfilePath string
}

// file is a script's file: its content, or its source.
type file struct {
	name    string // relative to the folder of the script
	content []byte
	url     string // "" when the content is here
}

// reboot is when the server is restarted after the plan.
type reboot int

const (
	rebootNever reboot = iota
	rebootAfterSuccess
	rebootAlways
)

// The codes of errors in the results of Murano's agent.
const (
	codeFailed  = 1 // a mistake in the body, or any other error
	codeFormat  = 2
	codeVersion = 9
	codeScript  = 100 // a script ended with another exit code than 0
)

var newest = semver.MustParse("2.2.0")

// Parse reads a plan in the form for an agent: Body, Parameters, Scripts, Files by their ids. A mistake is an *Error.
func Parse(plan map[string]any) (*Plan, error) {
	version, err := semver.NewVersion(textOf(plan["FormatVersion"], "1.0.0"))
	if err != nil || version.GreaterThan(newest) {
		return nil, &Error{Code: codeVersion, Message: fmt.Sprintf("Unsupported format version %v (versions up to %s are supported)", plan["FormatVersion"], newest)}
	}
	if _, isList := plan["Scripts"].([]any); isList || plan["Commands"] != nil {
		return nil, formatError("the plan has PowerShell scripts and Commands, which are for Windows: Burano runs plans on servers with Linux only")
	}
	if action := textOf(plan["Action"], "Execute"); action != "Execute" {
		return nil, formatError("the Action of the plan is %q, and only Execute is known", action)
	}
	p := &Plan{Name: textOf(plan["Name"], "execution plan"), scripts: map[string]script{}, files: map[string]file{}}
	source, isText := plan["Body"].(string)
	if !isText {
		return nil, formatError("Body is not in the execution plan")
	}
	scripts, files := map[string]any{}, map[string]any{}
	for attribute, into := range map[string]*map[string]any{"Scripts": &scripts, "Files": &files, "Parameters": &p.parameters} {
		if plan[attribute] == nil {
			continue
		}
		given, isMap := plan[attribute].(map[string]any)
		if !isMap {
			return nil, formatError("%s is not a dictionary", attribute)
		}
		*into = given
	}
	if len(scripts) > maxScripts || len(files) > maxFiles {
		return nil, formatError("the plan has more than %d scripts or %d files", maxScripts, maxFiles)
	}
	if n, isNumber := plan["RebootOnCompletion"].(int64); isNumber {
		p.reboot = reboot(min(max(n, 0), int64(rebootAlways)))
	}
	total := 0
	for id, description := range files {
		one, err := parseFile(id, description, version)
		if err != nil {
			return nil, err
		}
		if total += len(one.content); total > maxPlanBytes {
			return nil, formatError("the files of the plan have more than %d MiB", maxPlanBytes>>20)
		}
		p.files[id] = one
	}
	for name, description := range scripts {
		if p.scripts[name], err = p.parseScript(name, description, version); err != nil {
			return nil, err
		}
	}
	if p.body, err = body.Parse(source); err != nil {
		return nil, &Error{Code: codeFailed, Message: err.Error(), cause: err}
	}
	p.content, err = p.summary(source)
	p.Name = told(p.Name)
	return p, err
}

// maxName is in characters.
const maxName = 80

// told is a plan's name in one line. The name of a plan without one is "Execute" and its whole script, of which the first line that is no comment is
// taken.
func told(name string) string {
	lines := strings.Split(strings.TrimSpace(name), "\n")
	if len(lines) == 1 {
		return cut(lines[0], false)
	}
	verb := ""
	if rest, is := strings.CutPrefix(lines[0], executing); is {
		verb, lines[0] = executing, rest
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return cut(verb+line, true)
		}
	}
	return cut(verb+lines[0], true)
}

// executing is how the core library's configuration.Linux calls the plan of a command.
const executing = "Execute "

// cut is a text of a bearable length. more is true if the text goes on.
func cut(text string, more bool) string {
	runes := []rune(strings.TrimSpace(text))
	if more || len(runes) > maxName {
		return string(runes[:min(len(runes), maxName)]) + "…"
	}
	return string(runes)
}

func formatError(format string, args ...any) error {
	return &Error{Code: codeFormat, Message: fmt.Sprintf(format, args...)}
}

func textOf(value any, otherwise string) string {
	switch v := value.(type) {
	case nil:
		return otherwise
	case string:
		return v
	}
	return fmt.Sprint(value)
}

func parseFile(id string, description any, version *semver.Version) (file, error) {
	given, isMap := description.(map[string]any)
	name, named := given["Name"].(string)
	if !isMap || !named {
		return file{}, formatError("Incorrect Name entry in file %s", id)
	}
	if !inside(name) {
		return file{}, formatError("the file %s is called %q, which is no path below the folder of its script", id, name)
	}
	if given["Type"] != nil || given["URL"] != nil {
		url, hasURL := given["URL"].(string)
		switch {
		case version.Major() == 2 && version.Minor() == 0:
			return file{}, formatError("Download file %s is not valid for version %s: 2.1.0 is needed", id, version)
		case given["Type"] != "Downloadable":
			return file{}, formatError("Incorrect Type entry in file %s", id)
		case !hasURL || !isURL(url):
			return file{}, formatError("Incorrect URL entry in file %s", id)
		}
		return file{name: name, url: url}, nil
	}
	text, hasBody := given["Body"].(string)
	if !hasBody {
		return file{}, formatError("Incorrect Body entry in file %s", id)
	}
	switch textOf(given["BodyType"], "Text") {
	case "Text":
		return file{name: name, content: []byte(text)}, nil
	case "Base64":
		content, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return file{}, formatError("the Body of file %s is not Base64: %v", id, err)
		}
		return file{name: name, content: content}, nil
	}
	return file{}, formatError("Incorrect BodyType in file %s", id)
}

// inside is true if a name is a path below a folder.
func inside(name string) bool {
	clean := path.Clean(name)
	return name != "" && !path.IsAbs(name) && clean != "." && clean != ".." && !strings.HasPrefix(clean, "../") && !strings.ContainsAny(name, "\x00\n")
}

func (p *Plan) parseScript(name string, description any, version *semver.Version) (script, error) {
	given, isMap := description.(map[string]any)
	if !isMap || !inside(name) || strings.Contains(name, "/") {
		return script{}, formatError("the script %q cannot be read", name)
	}
	s := script{}
	var typed, entered bool
	if s.kind, typed = given["Type"].(string); !typed {
		return s, formatError("Incorrect Type entry in script %s", name)
	}
	if s.entry, entered = given["EntryPoint"].(string); !entered {
		return s, formatError("Incorrect EntryPoint entry in script %s", name)
	}
	switch s.kind {
	case typeApplication:
		if entry, known := p.files[s.entry]; !known || entry.url != "" {
			return s, formatError("Script %s misses entry point %s", name, s.entry)
		}
	case typeChef, typePuppet:
		if version.LessThan(semver.MustParse("2.1.0")) {
			return s, formatError("Type %s is not valid for format %s: 2.1.0 is needed", s.kind, version)
		}
		if !recipe.MatchString(s.entry) {
			return s, formatError("Wrong EntryPoint %s for Puppet/Chef executors. :: needed", s.entry)
		}
	default:
		return s, formatError("Script %s has not a valid type: %s", name, s.kind)
	}
	if err := s.parseOptions(name, given["Options"], version); err != nil {
		return s, err
	}
	files, isList := given["Files"].([]any)
	if given["Files"] != nil && !isList {
		return s, formatError("Files of script %s is not a list", name)
	}
	for _, one := range files {
		id, isText := one.(string)
		if _, known := p.files[id]; !isText || !known {
			return s, formatError("Script %s misses file %v", name, one)
		}
		s.files = append(s.files, id)
	}
	return s, nil
}

func (s *script) parseOptions(name string, given any, version *semver.Version) error {
	s.captureOut, s.captureErr, s.verify = true, true, true
	if given == nil {
		return nil
	}
	options, isMap := given.(map[string]any)
	if !isMap {
		return formatError("Options of script %s is not a dictionary", name)
	}
	for option, into := range map[string]*bool{"captureStdout": &s.captureOut, "captureStderr": &s.captureErr, "verifyExitcode": &s.verify,
		"useBerkshelf": &s.berkshelf, "restartAfterReboot": &s.afterReboot} {
		if value, there := options[option]; there {
			*into = truth(value)
		}
	}
	s.berksfilePath = textOf(options["berksfilePath"], "")
	for _, option := range []string{"useBerkshelf", "berksfilePath"} {
		switch _, there := options[option]; {
		case !there:
		case version.LessThan(newest):
			return formatError("Script %s has an option %s invalid for version %s", name, option, version)
		case s.kind != typeChef:
			return formatError("Script %s has an option %s invalid for type %s", name, option, s.kind)
		}
	}
	if s.berksfilePath != "" && !inside(s.berksfilePath) {
		return formatError("the berksfilePath %q of script %s is no path below its folder", s.berksfilePath, name)
	}
	return nil
}

// truth is a value's truth by Python's if; texts stand for booleans after .bind.
func truth(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case string:
		return v != "" && !strings.EqualFold(v, "false")
	case int64:
		return v != 0
	}
	return value != nil
}

// summary is the text that identifies the plan.
func (p *Plan) summary(source string) ([]byte, error) {
	scripts := map[string]any{}
	for name, s := range p.scripts {
		files := []string{}
		for _, id := range s.files {
			files = append(files, p.files[id].name)
		}
		entry := s.entry
		if s.kind == typeApplication {
			entry = p.files[s.entry].name
		}
		s.entry, s.files = entry, files
		scripts[name] = fmt.Sprintf("%+v", s)
	}
	var files []string
	for _, one := range p.files {
		files = append(files, fmt.Sprintf("%q %q %q", one.name, one.content, one.url))
	}
	slices.Sort(files) // ids are made anew each time
	content, err := json.Marshal([]any{p.Name, source, p.parameters, scripts, files, p.reboot})
	if err != nil {
		return nil, formatError("the Parameters of the plan are no JSON: %v", err)
	}
	return content, nil
}

// scriptFiles are the files of a script, its entry point among them, in the order of their names.
func (p *Plan) scriptFiles(s script) []file {
	ids := map[string]bool{}
	for _, id := range s.files {
		ids[id] = true
	}
	if s.kind == typeApplication {
		ids[s.entry] = true
	}
	var files []file
	for id := range maps.Keys(ids) {
		files = append(files, p.files[id])
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files
}
