package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// inhabitant is the environment variable by which the test's own program becomes one that notes works in a file, and is killed.
const inhabitant = "BLACKBOX_TEST_FILE"

func TestMain(m *testing.M) {
	path := os.Getenv(inhabitant)
	if path == "" {
		os.Exit(m.Run())
	}
	box, _, _, err := Open(path)
	if err != nil {
		panic(err)
	}
	box.Begin(Work{Kind: Request, What: "GET /ended"}).End()
	box.Begin(Work{Kind: Task, Project: "p1", What: "deployment", Key: "t1"})
	box.Begin(Work{Kind: Request, What: "POST /v1/x"}).Change(func(work *Work) { work.Project, work.Key = "p2", "k2" })
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		panic(err)
	}
	_ = self.Kill()
	select {}
}

func TestTheNextStartKnowsWhatRanWhenTheProcessWasKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "running")
	program, err := os.Executable()
	require.NoError(t, err)
	killed := exec.Command(program)
	killed.Env = append(os.Environ(), inhabitant+"="+path)
	require.ErrorContains(t, killed.Run(), "killed")

	box, ran, more, err := Open(path)
	require.NoError(t, err)
	require.False(t, more)
	require.ElementsMatch(t, []Work{{Kind: Task, Project: "p1", What: "deployment", Key: "t1"}, {Kind: Request, Project: "p2", What: "POST /v1/x", Key: "k2"}}, ran)
	_, alone := Alone(ran, more)
	require.False(t, alone)
	box.Begin(Work{Kind: Request, What: "GET /unfinished"})
	require.NoError(t, box.Close())

	_, ran, more, err = Open(path)
	require.NoError(t, err)
	require.Empty(t, ran, "it stopped by itself")
	require.False(t, more)
}

func TestWorksThatFindNoPlaceAreKnownToHaveRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "running")
	box, _, _, err := Open(path)
	require.NoError(t, err)
	var notes []*Note
	for range slots + 1 {
		notes = append(notes, box.Begin(Work{Kind: Request, What: strings.Repeat("<", 10_000), Project: strings.Repeat("é", 1000)}))
	}
	for _, note := range notes[1:slots] {
		note.End()
		note.End()
	}
	_, ran, more, err := Open(path)
	require.NoError(t, err)
	require.Len(t, ran, 1)
	require.True(t, more)
	_, alone := Alone(ran, more)
	require.False(t, alone)
}

func TestTextsOfWorksAreOnesThatDatabasesTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "running")
	box, _, _, err := Open(path)
	require.NoError(t, err)
	box.Begin(Work{Kind: Request, What: "GET /\xff\x00" + strings.Repeat("é", longText), Project: strings.Repeat("é", longText)})
	_, ran, more, err := Open(path)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, ran, 1)
	for _, text := range []string{ran[0].What, ran[0].Project} {
		require.True(t, utf8.ValidString(text), "%q", text)
		require.NotContains(t, text, "\x00")
	}
	require.Contains(t, ran[0].What, "GET /\uFFFD")
}

func TestASuspectThatRunsToItsEndIsNone(t *testing.T) {
	box, _, _, err := Open(filepath.Join(t.TempDir(), "running"))
	require.NoError(t, err)
	box.Suspect(map[string]bool{"refused": true, "seen": false})
	require.True(t, box.Refused("refused"))
	require.False(t, box.Refused("seen"))
	require.False(t, (*Box)(nil).Refused("refused"))
	for _, key := range []string{"", "refused", "other", "seen", "seen"} {
		box.Begin(Work{Kind: Request, Key: key}).End()
	}
	require.Equal(t, "seen", <-box.Survived())
	require.Empty(t, box.Survived())
	require.True(t, box.Refused("refused"))
}

func BenchmarkNote(b *testing.B) {
	box, _, _, err := Open(filepath.Join(b.TempDir(), "running"))
	require.NoError(b, err)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			box.Begin(Work{Kind: Request, Project: "0123456789abcdef0123456789abcdef", What: "GET /v1/environments/0123456789abcdef0123456789abcdef"}).End()
		}
	})
}
