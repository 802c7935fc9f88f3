package house

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "add today's headlines to testdata/anchors.txt, so that links to them hold from now on")

const (
	root     = "../.."
	contents = "docs/README.md"
)

var (
	headlines = regexp.MustCompile(`(?m)^(#{1,6}) +(.*)$`)
	fences    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	spans     = regexp.MustCompile("`[^`\n]*`")
	entries   = regexp.MustCompile(`(?m)^- \[(.*?)\]\(([^)]+)\.md\): `)
	links     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notWords  = regexp.MustCompile(`[^\p{L}\p{N}\s-]`)
)

// document is a file in Markdown; its name is its path in the repository.
type document struct {
	name, title, text string
	anchors           []string
}

// documents returns the documents: the project's README, the changelog and the chapters of the book, with its contents.
func documents(t *testing.T) map[string]document {
	chapters, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	found := map[string]document{}
	for _, file := range append(chapters, filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md")) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name, err := filepath.Rel(root, file)
		require.NoError(t, err)
		d := document{name: filepath.ToSlash(name), text: fences.ReplaceAllString(string(text), "")}
		for _, headline := range headlines.FindAllStringSubmatch(d.text, -1) {
			if headline[1] == "#" && d.title == "" {
				d.title = headline[2]
			}
			d.anchors = append(d.anchors, anchorOf(headline[2]))
		}
		found[d.name] = d
	}
	return found
}

// anchorOf is the name of a headline in links, as common code hosts and the dashboard's help make it.
func anchorOf(headline string) string {
	return strings.ReplaceAll(strings.TrimSpace(notWords.ReplaceAllString(strings.ToLower(headline), "")), " ", "-")
}

// movedAnchors maps former places of chapters to their present ones: "actions#masters" is "scaling#masters".
func movedAnchors(t *testing.T) map[string]string {
	text, err := os.ReadFile(filepath.Join(root, "docs", "moved.json"))
	require.NoError(t, err)
	moved := map[string]string{}
	require.NoError(t, json.Unmarshal(text, &moved))
	return moved
}

func TestTheContentsNameEachChapterOnceByItsTitle(t *testing.T) {
	all := documents(t)
	var listed []string
	for _, entry := range entries.FindAllStringSubmatch(all[contents].text, -1) {
		name := "docs/" + entry[2] + ".md"
		require.Contains(t, all, name, "%s names a chapter that is not there", contents)
		require.Equal(t, all[name].title, entry[1], "%s gives %s another title", contents, name)
		listed = append(listed, name)
	}
	chapters := slices.DeleteFunc(slices.Collect(maps.Keys(all)), func(name string) bool { return !strings.HasPrefix(name, "docs/") || name == contents })
	require.ElementsMatch(t, chapters, listed, "%s lists each chapter once, as `- [its title](file.md): what it is about`", contents)
}

func TestEveryRelativeLinkInTheDocumentsLeadsSomewhere(t *testing.T) {
	all := documents(t)
	seen := 0
	for _, d := range all {
		for _, match := range links.FindAllStringSubmatch(spans.ReplaceAllString(d.text, ""), -1) {
			if regexp.MustCompile(`^[a-z]+:`).MatchString(match[1]) {
				continue
			}
			seen++
			file, section, hasSection := strings.Cut(match[1], "#")
			name := d.name
			if file != "" {
				name = path.Join(path.Dir(d.name), file)
			}
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s links to %s, which is not there", d.name, match[1])
			} else if hasSection && !slices.Contains(all[name].anchors, section) {
				t.Errorf("%s links to %s, and %s has no such headline", d.name, match[1], name)
			}
		}
	}
	require.Greater(t, seen, 200, "links are found")
}

func TestEachHeadlineOfAChapterHasAnAnchorOfItsOwn(t *testing.T) {
	for _, d := range documents(t) {
		if strings.HasPrefix(d.name, "docs/") {
			anchors := slices.Sorted(slices.Values(d.anchors))
			require.Equal(t, slices.Compact(slices.Clone(anchors)), anchors, "%s: a link could lead to either of two headlines", d.name)
		}
	}
}

// Others link to places in the book. A headline that is renamed, or comes into another chapter, gets a line in docs/moved.json, which the dashboard follows.
func TestLinksToPlacesOfFormerReleasesStillLeadThere(t *testing.T) {
	all, moved := documents(t), movedAnchors(t)
	there := func(place string) bool {
		chapter, section, _ := strings.Cut(place, "#")
		return slices.Contains(all["docs/"+chapter+".md"].anchors, section)
	}
	for from, to := range moved {
		require.False(t, there(from), "docs/moved.json: %s is there", from)
		require.True(t, there(to), "docs/moved.json: %s, to which %s has moved, is not there", to, from)
	}
	kept := filepath.Join("testdata", "anchors.txt")
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	former := strings.Fields(string(text))
	if *update {
		for _, d := range all {
			if chapter, is := strings.CutPrefix(strings.TrimSuffix(d.name, ".md"), "docs/"); is && chapter != "commands" { // whose places are the commands
				for _, anchor := range d.anchors {
					former = append(former, chapter+"#"+anchor)
				}
			}
		}
		slices.Sort(former)
		former = slices.Compact(former)
		require.NoError(t, os.WriteFile(kept, []byte(strings.Join(former, "\n")+"\n"), 0o644))
	}
	require.NotEmpty(t, former)
	for _, place := range former {
		if !there(place) && moved[place] == "" {
			t.Errorf("nothing is at %s any more: say in docs/moved.json where that is now", place)
		}
	}
}
