package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// job is the command of a job of docs/automation.md: when a change is proposed, and when it was merged.
type job struct{ proposed, taken string }

// jobs reads the jobs of GitLab and GitHub out of the document.
func jobs(t *testing.T) (gitlab, github job) {
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "automation.md"))
	require.NoError(t, err)
	read := func(name string, into any) {
		block := regexp.MustCompile("(?s)```yaml\n# " + regexp.QuoteMeta(name) + "\n(.*?)```").FindSubmatch(document)
		require.NotNil(t, block, name)
		require.NoError(t, yaml.Unmarshal(block[1], into))
	}
	burano := func(line string) bool { return strings.HasPrefix(line, "burano ") }

	var pipeline struct {
		Platform struct {
			Rules []struct {
				If        string
				Variables map[string]string
			}
			Script []string
		}
	}
	read(".gitlab-ci.yml", &pipeline)
	line := pipeline.Platform.Script[slices.IndexFunc(pipeline.Platform.Script, burano)]
	for _, rule := range pipeline.Platform.Rules {
		said := strings.ReplaceAll(line, "$HOW", rule.Variables["HOW"])
		if strings.Contains(rule.If, "merge_request_event") {
			gitlab.proposed = said
		} else {
			gitlab.taken = said
		}
	}
	var workflow struct {
		Jobs map[string]struct {
			If    string
			Steps []struct{ Run string }
		}
	}
	read(".github/workflows/platform.yml", &workflow)
	for _, one := range workflow.Jobs {
		said := one.Steps[slices.IndexFunc(one.Steps, func(step struct{ Run string }) bool { return burano(step.Run) })].Run
		if strings.Contains(one.If, "pull_request") {
			github.proposed = said
		} else {
			github.taken = said
		}
	}
	return gitlab, github
}

// TestTheJobsOfTheDocumentsApplyAProject runs the commands of the jobs: for proposals with an application credential, for merged changes as
// a user.
func TestTheJobsOfTheDocumentsApplyAProject(t *testing.T) {
	s := start(t)
	gitlab, github := jobs(t)
	require.Equal(t, gitlab, github)
	s.write(map[string]string{
		"platform/org.test.App/manifest.yaml": manifest("org.test.App", ""), "platform/org.test.App/Classes/C.yaml": class("org.test.App"),
		"platform/package.yaml": "kind: Package\npath: ./org.test.App\n", "platform/template.yaml": "kind: Template\nname: small\n", "platform/demo.yaml": "kind: Environment\nname: demo\n",
	})
	keystone := s.identityOf("demo", "demo")
	me, err := tokens.Get(t.Context(), keystone, keystone.Token()).ExtractUser()
	require.NoError(t, err)
	credential, err := applicationcredentials.Create(t.Context(), keystone, me.ID, applicationcredentials.CreateOpts{Name: "look"}).Extract()
	require.NoError(t, err)
	var byCredential []string
	for _, variable := range s.as("", "", "OS_AUTH_TYPE=v3applicationcredential", "OS_APPLICATION_CREDENTIAL_ID="+credential.ID, "OS_APPLICATION_CREDENTIAL_SECRET="+credential.Secret) {
		if !strings.HasPrefix(variable, "OS_USER") && !strings.HasPrefix(variable, "OS_PROJECT") && !strings.HasPrefix(variable, "OS_PASSWORD") {
			byCredential = append(byCredential, variable)
		}
	}
	folder := t.TempDir()
	require.NoError(t, os.Symlink(s.program, filepath.Join(folder, "burano")))
	run := func(environment []string, line string) string {
		command := exec.CommandContext(t.Context(), "bash", "-euc", line)
		command.Dir, command.Env = s.home, append(environment, "PATH="+folder+":"+os.Getenv("PATH"))
		output, err := command.CombinedOutput()
		require.NoErrorf(t, err, "%s: %s", line, output)
		return string(output)
	}
	require.Contains(t, run(byCredential, gitlab.proposed), "3 would be added, 0 would be changed, 0 as described")
	require.Contains(t, run(s.as("demo", "demo"), gitlab.taken), "3 added, 0 changed, 0 as described")
	require.Contains(t, run(byCredential, gitlab.proposed), "0 would be added, 0 would be changed, 3 as described")
}
