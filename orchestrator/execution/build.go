package execution

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Read returns a file of a package's folder Resources.
type Read func(name string) ([]byte, error)

// TemplateError is a template that no plan can be made of: a ValueError in Python.
type TemplateError struct{ text string }

func (e *TemplateError) Error() string            { return e.text }
func (e *TemplateError) ExceptionNames() []string { return []string{"ValueError"} }

func templateError(format string, args ...any) error {
	return &TemplateError{fmt.Sprintf("the execution plan's template: "+format, args...)}
}

// scriptsFolder is the folder of scripts and their files in Resources.
const scriptsFolder = "scripts"

// Build makes of a template the plan that is sent: the files that its scripts name come from the package's resources. A file is named by
// its path in Resources/scripts; <path> keeps the file's bytes as they are, where text else has Unix's ends of lines. {name: path} gives it
// another name; an address (URL) in place of a path is downloaded by the server.
func Build(template map[string]any, read Read) (map[string]any, error) {
	plan := maps.Clone(template)
	if version := textOf(plan["FormatVersion"], "1.0.0"); strings.HasPrefix(version, "1.") {
		if _, isMap := plan["Scripts"].(map[string]any); !isMap {
			return plan, nil // Parse refuses it
		}
	}
	b := builder{read: read, files: map[string]any{}, ids: map[string]string{}}
	if given, isMap := plan["Files"].(map[string]any); isMap {
		for id, description := range given {
			b.files[id] = description
			if described, isMap := description.(map[string]any); isMap {
				b.ids[textOf(described["Name"], id)] = id
			}
		}
	}
	scripts, isMap := plan["Scripts"].(map[string]any)
	if !isMap && plan["Scripts"] != nil {
		return nil, templateError("Scripts is no map of scripts")
	}
	built := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		described, isMap := scripts[name].(map[string]any)
		if !isMap {
			return nil, templateError("the script %s is no map", name)
		}
		one, err := b.script(name, described)
		if err != nil {
			return nil, err
		}
		built[name] = one
	}
	plan["Scripts"], plan["Files"] = built, b.files
	if plan["Action"] == nil {
		plan["Action"] = "Execute"
	}
	return plan, nil
}

type builder struct {
	read  Read
	files map[string]any
	ids   map[string]string // by the names of files
}

func (b *builder) script(name string, described map[string]any) (map[string]any, error) {
	described = maps.Clone(described)
	if described["Type"] == nil {
		described["Type"] = typeApplication
	}
	entry, isText := described["EntryPoint"].(string)
	if !isText {
		return nil, templateError("No entry point in script %s", name)
	}
	options, _ := described["Options"].(map[string]any)
	exact := truth(options["useBase64"])
	if described["Type"] == typeApplication {
		id, err := b.place(entry, exact)
		if err != nil {
			return nil, err
		}
		described["EntryPoint"] = id
	}
	var ids []any
	switch files := described["Files"].(type) {
	case nil:
	case []any:
		for _, one := range files {
			id, err := b.place(one, exact)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
	case map[string]any: // files as a plan has them, by their ids
		for _, id := range slices.Sorted(maps.Keys(files)) {
			b.files[id] = files[id]
			ids = append(ids, id)
		}
	default:
		return nil, templateError("Files of script %s is no list", name)
	}
	described["Files"] = ids
	return described, nil
}

// place puts a script's file into the files of the plan, unless it is there, and returns its id.
func (b *builder) place(named any, exact bool) (string, error) {
	name, from, err := reference(named)
	if err != nil {
		return "", err
	}
	if id, there := b.ids[name]; there {
		return id, nil
	}
	id := fmt.Sprintf("file%d", len(b.files)+1)
	for b.files[id] != nil {
		id += "_"
	}
	if isURL(from) {
		b.files[id] = map[string]any{"Name": name, "URL": from, "Type": "Downloadable"}
		b.ids[name] = id
		return id, nil
	}
	if inner, is := bracketed(from); is {
		from, exact = inner, true
	}
	if !inside(from) {
		return "", templateError("%q is no path in Resources/%s", from, scriptsFolder)
	}
	content, err := b.read(path.Join(scriptsFolder, from))
	if err != nil {
		return "", err
	}
	if exact || !utf8.Valid(content) {
		b.files[id] = map[string]any{"Name": name, "BodyType": "Base64", "Body": base64.StdEncoding.EncodeToString(content)}
	} else {
		text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(content))
		b.files[id] = map[string]any{"Name": name, "BodyType": "Text", "Body": text}
	}
	b.ids[name] = id
	return id, nil
}

// reference is the name that a script knows a file by, and where it is from.
func reference(named any) (name, from string, err error) {
	switch v := named.(type) {
	case string:
		name, from = v, v
	case map[string]any:
		for key, value := range v {
			name, from = key, textOf(value, "")
		}
		if len(v) != 1 || from == "" {
			return "", "", templateError("a file is a path, or a map of one name and one path: %v", named)
		}
	default:
		return "", "", templateError("a file is a path, or a map of one name and one path: %v", named)
	}
	if isURL(name) {
		// A cookbook or module must be in a folder of its own name.
		name = strings.TrimSuffix(path.Base(strings.TrimRight(name, "/")), ".git")
	} else if inner, is := bracketed(name); is {
		name = inner
	}
	return name, from, nil
}

func bracketed(name string) (string, bool) {
	inner, opened := strings.CutPrefix(name, "<")
	inner, closed := strings.CutSuffix(inner, ">")
	return inner, opened && closed
}

// isURL is true if a text is the address of a download.
func isURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && parsed.Scheme != "" && parsed.Host != ""
}
