package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/cmd/burano/server"
)

var update = flag.Bool("update", false, "write docs/commands.md and the generated part of docs/configuration.md")

// documents is the folder of the documents, as seen from this one.
var documents = filepath.Join("..", "..", "docs")

// plainCommand is the tree of commands on a machine where nobody has said anything by variables, which are defaults of flags.
func plainCommand(t *testing.T) *cobra.Command {
	for _, name := range []string{"OS_CLOUD", "BURANO_URL"} {
		t.Setenv(name, "")
	}
	return command()
}

// TestTheReferenceOfCommandsIsWhatTheProgramSays writes docs/commands.md with -update.
func TestTheReferenceOfCommandsIsWhatTheProgramSays(t *testing.T) {
	want := commandsReference(plainCommand(t))
	path := filepath.Join(documents, "commands.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(content), "run the test with -update")
}

// commandsReference is a page of all commands, in the groups and words of their own help.
func commandsReference(root *cobra.Command) string {
	var page strings.Builder
	page.WriteString("# Commands\n\n" +
		"All commands of the program, with the text of their `--help`. The Debian package has the same as pages of the manual (`man burano-cluster`) and completions for shells.\n")
	for _, group := range root.Groups() {
		fmt.Fprintf(&page, "\n## %s\n\n| command | purpose |\n|---|---|\n", strings.TrimSuffix(group.Title, ":"))
		for _, one := range root.Commands() {
			if one.GroupID == group.ID && !one.Hidden {
				fmt.Fprintf(&page, "| [`%s`](#%s) | %s |\n", one.CommandPath(), strings.ReplaceAll(one.CommandPath(), " ", "-"), inTable(one.Short))
			}
		}
	}
	page.WriteString("\n## Options of all commands\n\n" + fenced(root.PersistentFlags().FlagUsages()))
	for _, one := range root.Commands() {
		referenceOf(&page, one, 2)
	}
	page.WriteString("\n<!-- written by go test ./cmd/burano -run TheReferenceOfCommands -update -->\n")
	return page.String()
}

// referenceOf writes a command and those below it.
func referenceOf(page *strings.Builder, command *cobra.Command, level int) {
	if command.Hidden {
		return
	}
	fmt.Fprintf(page, "\n%s %s\n\n%s\n", strings.Repeat("#", level), command.CommandPath(), command.Short)
	if command.Long != "" {
		// Lines that a terminal shows as they are stay as they are; the rest are paragraphs.
		for _, paragraph := range strings.Split(strings.TrimSpace(command.Long), "\n\n") {
			if strings.Contains("\n"+paragraph, "\n ") {
				page.WriteString("\n" + fenced(paragraph))
			} else {
				page.WriteString("\n" + inText(paragraph) + "\n")
			}
		}
	}
	if command.Runnable() {
		page.WriteString("\n" + fenced(command.UseLine()))
	}
	if command.Example != "" {
		page.WriteString("\n" + fenced(command.Example))
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = command.Flags().SortFlags
	settings := (&server.Options{}).Flags()
	reads := command.Flags().Lookup(server.ConfigFlag) != nil
	command.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		setting := reads && settings.Lookup(flag.Name) != nil && server.IsSetting(flag)
		if flag.Name != "help" && !setting {
			own.AddFlag(flag)
		}
	})
	if usage := own.FlagUsages(); usage != "" {
		page.WriteString("\n" + fenced(usage))
	}
	if reads {
		page.WriteString("\nEach of the [settings](configuration.md) is an option too.\n")
	}
	for _, one := range command.Commands() {
		referenceOf(page, one, level+1)
	}
}

func fenced(text string) string { return "```text\n" + strings.Trim(text, "\n") + "\n```\n" }

// inText keeps placeholders in angle brackets and stars from being read as Markdown.
func inText(text string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`).Replace(text)
}

func inTable(text string) string { return strings.ReplaceAll(inText(text), "|", `\|`) }

var (
	// spans are the commands in a line of text.
	spans = regexp.MustCompile("`(burano [^`]+)`")
	// calls are the commands in a line of a shell's block, the last one of it.
	calls = regexp.MustCompile(`^(?:.*[\s(])?burano (.*)`)
	// ends are where a command's arguments end in a line of a shell.
	ends = regexp.MustCompile(`\s#.*|\s(\||>|>>|<<|&&)\s?.*|;.*|\s\d?>.*`)
)

// TestTheDocumentsNameCommandsAndOptionsThatExist compares the commands in README and documents with the program.
func TestTheDocumentsNameCommandsAndOptionsThatExist(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(documents, "*.md"))
	require.NoError(t, err)
	seen := 0
	root := plainCommand(t)
	root.InitDefaultCompletionCmd() // as Execute does
	for _, path := range append(paths, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "CHANGELOG.md")) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, one := range commandsIn(string(content)) {
			seen++
			for _, text := range alternatives(one.text) {
				if err := exists(root, text); err != nil {
					t.Errorf("%s:%d: burano %s: %v", path, one.line, text, err)
				}
			}
		}
	}
	require.Greater(t, seen, 100, "commands are found")
}

type typed struct {
	line int
	text string // behind the program's name
}

// commandsIn finds commands, in blocks of a shell and in the text.
func commandsIn(document string) (found []typed) {
	fence := ""
	number := 0
	for line := range strings.Lines(document) {
		number++
		trimmed := strings.TrimSpace(line)
		if language, is := strings.CutPrefix(trimmed, "```"); is {
			if fence != "" {
				language = ""
			} else if language == "" {
				language = "text"
			}
			fence = language
			continue
		}
		switch fence {
		case "sh", "console":
			if match := calls.FindStringSubmatch(strings.TrimPrefix(trimmed, "$ ")); match != nil && !strings.HasPrefix(trimmed, "#") {
				found = append(found, typed{number, ends.ReplaceAllString(match[1], "")})
			}
		case "":
			for _, match := range spans.FindAllStringSubmatch(line, -1) {
				found = append(found, typed{number, strings.TrimPrefix(ends.ReplaceAllString(match[1], ""), "burano ")})
			}
		}
	}
	return found
}

// alternatives are the commands that a text such as "node lock|unlock" stands for.
func alternatives(text string) (texts []string) {
	for i, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "-") || i > 3 {
			break
		}
		if one, others, several := strings.Cut(word, "|"); several {
			return append(alternatives(strings.Replace(text, word, one, 1)), alternatives(strings.Replace(text, word, others, 1))...)
		}
	}
	return []string{text}
}

// exists tells why the program does not know a command or one of its options.
func exists(root *cobra.Command, text string) error {
	words, err := shellquote.Split(strings.TrimSuffix(strings.NewReplacer("[", "", "]", "", "…", "").Replace(text), `\`))
	if err != nil {
		return err
	}
	command, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if command.HasSubCommands() && !command.Runnable() {
		// A document may name a whole family of commands, but none that is not there.
		if i := slices.IndexFunc(rest, func(word string) bool { return !strings.HasPrefix(word, "-") }); i >= 0 {
			return fmt.Errorf("%s has no command %s", command.CommandPath(), rest[i])
		}
	}
	for _, word := range rest {
		name, _, _ := strings.Cut(word, "=")
		long, is := strings.CutPrefix(name, "--")
		switch {
		case is && long != "" && command.Flag(long) == nil && long != "help" && long != "version":
			return fmt.Errorf("%s has no option --%s", command.CommandPath(), long)
		case !is && len(name) == 2 && name[0] == '-' && command.Flags().ShorthandLookup(name[1:]) == nil && name != "-h":
			return fmt.Errorf("%s has no option %s", command.CommandPath(), name)
		}
	}
	return nil
}

func TestTheTableOfSettingsIsWhatTheProgramSays(t *testing.T) {
	const begin, end = "<!-- settings: written by go test ./cmd/burano -run TheTableOfSettings -update -->\n", "<!-- end of settings -->"
	path := filepath.Join("..", "..", "docs", "configuration.md")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(content), begin)
	require.True(t, found)
	table, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := server.SettingsTable((&server.Options{}).Flags())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
		return
	}
	require.Equal(t, want, table, "run the test with -update")
}
