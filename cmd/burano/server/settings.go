package server

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// settings are the values of flags that may also come from the environment (BURANO_LISTEN for --listen) and from a YAML file (listen).
// A flag wins over the environment, the environment over the file, the file over the default.
type settings struct {
	flags   *pflag.FlagSet
	sources map[string]string // of each flag: where its value comes from, as messages name it
	former  []string          // where settings have values that former releases had
}

// removed are settings of the former release. They have no effect, and are a warning; the next release refuses them.
var removed = []string{"max-values", "max-stranger-requests", "max-connections", "max-project-requests", "max-project-streams", "stop-patience", "audit-rows", "max-reports",
	"max-report-bytes", "keep-state-bytes"}

// Former are the places with settings that have no effect any more.
func (s *settings) Former() []string { return s.former }

// Flags that are no settings.
const (
	ConfigFlag = "config"
	printFlag  = "print-config"
	CloudFlag  = "os-cloud"
)

// variable is the name of a setting in the environment.
func variable(name string) string {
	if name == CloudFlag {
		return "OS_CLOUD" // as all of OpenStack's clients call it
	}
	return "BURANO_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// IsSetting is true for flags that also get a value from the environment and the file.
func IsSetting(flag *pflag.Flag) bool {
	return !flag.Hidden && !slices.Contains([]string{ConfigFlag, printFlag, "help"}, flag.Name)
}

// readSettings gives flags that are not on the command line their values from the environment, or else from the file that --config names. An error for a
// bad value or an unknown key names the place.
func readSettings(flags *pflag.FlagSet, lookup func(string) (string, bool)) (*settings, error) {
	s := &settings{flags: flags, sources: map[string]string{}}
	if err := s.read(flags.Lookup(ConfigFlag), lookup, nil); err != nil {
		return nil, err
	}
	file := map[string]fileValue{}
	if path := flags.Lookup(ConfigFlag).Value.String(); path != "" {
		var err error
		if file, err = readSettingsFile(path); err != nil {
			return nil, err
		}
		for name, value := range file {
			if flag := flags.Lookup(name); !slices.Contains(removed, name) && (flag == nil || !IsSetting(flag)) {
				return nil, fmt.Errorf("%s: there is no setting of this name; docs/configuration.md lists all", value.source)
			}
		}
	}
	for _, name := range removed {
		value, found := file[name]
		switch text, there := lookup(variable(name)); {
		case flags.Changed(name):
			s.former = append(s.former, "--"+name)
		case there && text != "":
			s.former = append(s.former, "variable "+variable(name))
		case found:
			s.former = append(s.former, value.source)
		}
	}
	var err error
	flags.VisitAll(func(flag *pflag.Flag) {
		if err == nil && IsSetting(flag) {
			err = s.read(flag, lookup, file)
		}
	})
	return s, err
}

func (s *settings) read(flag *pflag.Flag, lookup func(string) (string, bool), file map[string]fileValue) error {
	if flag.Changed {
		s.sources[flag.Name] = "--" + flag.Name
		return nil
	}
	s.sources[flag.Name] = "default"
	value, there := lookup(variable(flag.Name))
	source := "variable " + variable(flag.Name)
	if !there || value == "" {
		var found fileValue
		if found, there = file[flag.Name]; !there {
			return nil
		}
		value, source = found.text, found.source
	}
	if err := s.flags.Set(flag.Name, value); err != nil {
		if secretSettings[flag.Name] {
			return fmt.Errorf("%s: it cannot be used", source)
		}
		return fmt.Errorf("%s: %q cannot be used: %w", source, value, cause(err))
	}
	s.sources[flag.Name] = source
	return nil
}

// cause removes pflag's words about a command line, because the value was not on it.
func cause(err error) error {
	if invalid, ok := err.(*pflag.InvalidValueError); ok {
		return invalid.Unwrap()
	}
	return err
}

// wrong is an error with the name of the setting, and the place of its value.
func (s *settings) wrong(name, format string, args ...any) error {
	source := s.sources[name]
	if source == "default" {
		source = "--" + name
	}
	return fmt.Errorf("%s: %w", source, fmt.Errorf(format, args...))
}

type fileValue struct{ text, source string }

// readSettingsFile reads a YAML mapping of settings to scalars, or to lists of them.
func readSettingsFile(path string) (map[string]fileValue, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("%s is no YAML: %w", path, err)
	}
	values := map[string]fileValue{}
	if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
		return values, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s, line %d: there should be lines such as \"listen: 0.0.0.0:8082\"", path, root.Line)
	}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		source := fmt.Sprintf("%s, line %d, %s", path, key.Line, key.Value)
		if _, twice := values[key.Value]; twice {
			return nil, fmt.Errorf("%s: the setting is there already", source)
		}
		text := value.Value
		if value.Kind == yaml.SequenceNode {
			var items []string
			for _, item := range value.Content {
				if item.Kind != yaml.ScalarNode {
					return nil, fmt.Errorf("%s: a list holds single values", source)
				}
				items = append(items, item.Value)
			}
			text = strings.Join(items, ",")
		} else if value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%s: a setting has a single value, or a list of them", source)
		}
		values[key.Value] = fileValue{text: text, source: source}
	}
	return values, nil
}

// print shows all settings as a file that --config reads, each with where its value comes from; secrets are masked.
func (s *settings) print() string {
	var text strings.Builder
	s.flags.VisitAll(func(flag *pflag.Flag) {
		if !IsSetting(flag) {
			return
		}
		value := flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		if secretSettings[flag.Name] {
			value = masked(value)
		}
		node := yaml.Node{Kind: yaml.ScalarNode, Value: value}
		if value == "" {
			node.Style = yaml.DoubleQuotedStyle
		}
		line, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: flag.Name}, &node}})
		if err != nil {
			panic(err) // two scalars can be written
		}
		fmt.Fprintf(&text, "%s  # %s\n", strings.TrimSuffix(string(line), "\n"), s.sources[flag.Name])
	})
	return text.String()
}

// secretSettings may hold a password.
var secretSettings = map[string]bool{"database": true}

const mask = "***"

var passwordKeyword = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)`)

// masked takes the password out of a database's address, which is a URL or a list of keywords.
func masked(address string) string {
	if address == "" {
		return ""
	}
	if parsed, err := url.Parse(address); err == nil && parsed.Scheme != "" {
		query := parsed.Query()
		for _, name := range []string{"password", "sslpassword"} {
			if query.Has(name) {
				query.Set(name, mask)
				parsed.RawQuery = query.Encode()
			}
		}
		if _, has := parsed.User.Password(); has {
			parsed.User = url.UserPassword(parsed.User.Username(), mask)
		}
		return strings.ReplaceAll(parsed.String(), url.QueryEscape(mask), mask)
	}
	if passwordKeyword.MatchString(address) {
		return passwordKeyword.ReplaceAllString(address, "${1}"+mask)
	}
	return mask // neither form fits, so it may hold a password
}

// SettingsTable lists the settings for docs/configuration.md.
func SettingsTable(flags *pflag.FlagSet) string {
	var text strings.Builder
	text.WriteString("| setting | variable | default | meaning |\n|---|---|---|---|\n")
	flags.VisitAll(func(flag *pflag.Flag) {
		if !IsSetting(flag) {
			return
		}
		standard := "`" + flag.DefValue + "`"
		if flag.DefValue == "" || flag.DefValue == "[]" {
			standard = ""
		}
		fmt.Fprintf(&text, "| `%s` | `%s` | %s | %s |\n", flag.Name, variable(flag.Name), standard, strings.ReplaceAll(flag.Usage, "|", `\|`))
	})
	return text.String()
}

// packaged are the settings that a package gives.
var packaged = map[string]string{CloudFlag: "burano-service", "state": "/var/lib/burano"}

// CommentedSettings is a file of all settings with their meaning, each with its default and commented out.
func CommentedSettings(flags *pflag.FlagSet) []byte {
	var text bytes.Buffer
	text.WriteString("# Settings of the server of Burano. What is commented out has its default.\n# `burano serve --config FILE --print-config` shows all that are in force; `burano doctor --config FILE` looks whether they are good.\n")
	flags.VisitAll(func(flag *pflag.Flag) {
		if !IsSetting(flag) || flag.Hidden {
			return
		}
		fmt.Fprintf(&text, "\n# %s.\n", strings.ToUpper(flag.Usage[:1])+flag.Usage[1:])
		if value, given := packaged[flag.Name]; given {
			fmt.Fprintf(&text, "%s: %s\n", flag.Name, value)
			return
		}
		value := flag.DefValue
		if value == "" {
			value = `""`
		}
		fmt.Fprintf(&text, "#%s: %s\n", flag.Name, value)
	})
	return text.Bytes()
}
