package clients

import (
	"archive/zip"
	"bytes"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// murano is Debian's program, which needs Debian's Python even if the path has another one before it.
const murano = "/usr/bin/murano"

var id = regexp.MustCompile(`[0-9a-f]{32}`)
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)

// secret matches secrets: Keystone's tokens, and secrets of application credentials.
var secret = regexp.MustCompile(`gAAAAA[\w-]{128}|[\w-]{86}`)

// masked is a printed text without ids, times and secrets, which have the same lengths everywhere.
func masked(text string) string {
	text = secret.ReplaceAllStringFunc(text, func(found string) string {
		if strings.Trim(found, "-") == "" {
			return found // a table's border
		}
		return strings.Repeat("*", len(found))
	})
	text = id.ReplaceAllString(text, "<................id............>")
	return moment.ReplaceAllString(text, "<......time.......>")
}

func manifest(name, rest string) string {
	return "Format: 1.3\nType: Application\nFullName: " + name + "\nName: " + strings.TrimPrefix(name, "org.test.") + "\nAuthor: somebody\nDescription: what it is\n" +
		"Tags: [one, two]\nClasses: {" + name + ": C.yaml}\n" + rest
}

func class(name string) string { return "Name: " + name + "\n" }

// zipped packs files as a package.
func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	var archive bytes.Buffer
	writer := zip.NewWriter(&archive)
	for name, content := range files {
		entry, err := writer.Create(name)
		require.NoError(t, err)
		_, err = entry.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	return archive.String()
}

var update = flag.Bool("update", false, "write what the clients print into testdata")

// TestMuranosOwnClientWorksUnchanged goes through testdata/murano.txt: lines that begin with "$ <user>" are commands, and the lines
// after each are the client's output, ids and times apart.
func TestMuranosOwnClientWorksUnchanged(t *testing.T) {
	output, err := exec.Command(filepath.Join("..", "setup", "packages.sh"), "python3-muranoclient").CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	s := start(t)
	app := func(name, rest string) string {
		return zipped(t, map[string]string{"manifest.yaml": manifest(name, rest), "Classes/C.yaml": class(name), "UI/ui.yaml": "Version: 2.2\n"})
	}
	one := app("org.test.One", "")
	s.write(map[string]string{
		"one.zip":                           one,
		"two/manifest.yaml":                 manifest("org.test.Two", ""),
		"two/Classes/C.yaml":                class("org.test.Two"),
		"repository/apps/org.test.Base.zip": app("org.test.Base", ""),
		"repository/apps/org.test.App.zip":  app("org.test.App", "Require: {org.test.Base: }\n"),
		"repository/bundles/all.bundle":     `{"Packages": [{"Name": "org.test.App", "Version": ""}, {"Name": "org.test.Base"}]}`,
	})
	repository := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(s.home, "repository"))))
	t.Cleanup(repository.Close)

	const script = "testdata/murano.txt"
	transcript, err := os.ReadFile(script)
	require.NoError(t, err)
	named := map[string]string{} // name of an object in the client's output → its id
	var printed strings.Builder
	commands := 0
	for line := range strings.Lines(string(transcript)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "$" {
			continue
		}
		args := make([]string, 0, len(words)-2)
		for _, word := range words[2:] {
			if name, asks := strings.CutPrefix(word, "id:"); asks {
				require.Contains(t, named, name, line)
				word = named[name]
			}
			args = append(args, word)
		}
		out, _ := s.run(s.as(words[1], words[1], "MURANO_REPO_URL="+repository.URL), murano, args...)
		for row := range strings.Lines(out) {
			if cells := strings.Split(row, "|"); len(cells) > 3 && id.MatchString(cells[1]) {
				named[strings.TrimSpace(cells[2])] = strings.TrimSpace(cells[1])
				named[strings.TrimSpace(cells[3])] = strings.TrimSpace(cells[1])
			}
		}
		printed.WriteString(line + masked(strings.ReplaceAll(out, s.home, "<home>")))
		commands++
	}
	if *update {
		require.NoError(t, os.WriteFile(script, []byte(printed.String()), 0o600))
	}
	require.Greater(t, commands, 15)
	require.Equal(t, string(transcript), printed.String())
	downloaded, err := os.ReadFile(filepath.Join(s.home, "down.zip"))
	require.NoError(t, err)
	require.Equal(t, one, string(downloaded), "a download is what was uploaded")
}
