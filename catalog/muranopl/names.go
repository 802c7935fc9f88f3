package muranopl

import (
	"fmt"
	"strings"
)

// namespaces are the prefixes of a class document; "=" is the current namespace. A prefix may have no namespace (nil): "py:" of the exceptions of Python.
type namespaces map[string]*string

// resolve makes a fully qualified name of one as written: "Name", ":Name", "prefix:Name" or with dots.
func (n namespaces) resolve(name string) (string, error) {
	prefix, rest, prefixed := strings.Cut(name, ":")
	switch {
	case !prefixed && strings.Contains(name, "."):
		return name, nil
	case !prefixed:
		prefix, rest = "=", name
	case prefix == "":
		prefix = "="
	}
	if rest == "" {
		return "", fmt.Errorf("%q is no class name", name)
	}
	namespace, known := n[prefix]
	switch {
	case !known && prefix == "=":
		return rest, nil
	case !known:
		return "", fmt.Errorf("the prefix %q of %q is not among the Namespaces", prefix, name)
	case namespace == nil || *namespace == "":
		return rest, nil
	}
	return *namespace + "." + rest, nil
}

// typeName is how a model names a class: "name", "name/version", "name@package" or "name/version@package".
type typeName struct {
	class, version, pkg string
}

func parseTypeName(text string) typeName {
	var t typeName
	text, t.pkg, _ = strings.Cut(strings.TrimSpace(text), "@")
	t.class, t.version, _ = strings.Cut(text, "/")
	return t
}

// String is the name as a model writes it.
func (t typeName) String() string {
	text := t.class
	if t.version != "" {
		text += "/" + t.version
	}
	if t.pkg != "" {
		text += "@" + t.pkg
	}
	return text
}
