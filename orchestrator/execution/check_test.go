package execution

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/check"
)

func TestWhatIsWrongInATemplateIsFound(t *testing.T) {
	read := resources(map[string]string{"scripts/setup.sh": "#!/bin/bash\n"})
	script := func(more object) object {
		made := object{"Type": "Application", "EntryPoint": "setup.sh"}
		for key, value := range more {
			made[key] = value
		}
		return object{"setup": made}
	}
	for name, c := range map[string]struct {
		template object
		wanted   []string
	}{
		"in order": {object{"FormatVersion": "2.0.0", "Parameters": object{"port": "$port"}, "Scripts": script(nil),
			"Body": "x = setup\nx(args.port)\nfor n in range(len(args.keys())):\n  print(str(n).upper())\nreturn setup('{0}'.format(args['port'])).stdout"}, nil},
		"what is replaced":       {object{"FormatVersion": "2.0.0", "Scripts": script(object{"EntryPoint": "$entry", "Type": "$type"}), "Body": "setup()"}, nil},
		"a version to come":      {object{"FormatVersion": "3.0.0", "Body": "", "Scripts": script(nil)}, []string{"[]: Unsupported format version 3.0.0 (versions up to 2.2.0 are supported)"}},
		"an unknown type":        {object{"FormatVersion": "2.0.0", "Body": "setup()", "Scripts": script(object{"Type": "Ansible"})}, []string{"[Scripts setup]: Script setup has not a valid type: Ansible"}},
		"a type of later":        {object{"FormatVersion": "2.0.0", "Body": "setup()", "Scripts": script(object{"Type": "Chef", "EntryPoint": "a::b"})}, []string{"[Scripts setup]: Type Chef is not valid for format 2.0.0: 2.1.0 is needed"}},
		"a file that is missing": {object{"FormatVersion": "2.0.0", "Body": "setup()", "Scripts": script(object{"Files": []any{"gone.conf"}})}, []string{"[Scripts setup]: no file scripts/gone.conf: file does not exist"}},
		"a body that cannot be read": {object{"FormatVersion": "2.0.0", "Body": "setup(", "Scripts": script(nil)},
			[]string{"[]: line 2 of the plan's Body: SyntaxError: unexpected end of the body: a bracket is not closed"}},
		"names that nothing has": {object{"FormatVersion": "2.0.0", "Parameters": object{"port": 1}, "Body": "setup(args.prot)\nsteup()", "Scripts": script(nil)}, []string{
			"[Body]: line 1 of the plan's Body: AttributeError: args has no prot: the Parameters of the plan do not name it",
			"[Body]: line 2 of the plan's Body: NameError: steup is neither a script of the plan nor a function"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range Check(c.template, read) {
				got = append(got, fmt.Sprintf("%v: %s", one.Path, one.Text))
			}
			require.Equal(t, c.wanted, got)
		})
	}
}

// Neither Burano's own packages nor the packages of its tests get warnings.
func TestThePackagesThatAreKnownToWorkHaveNoMistakes(t *testing.T) {
	shelf, err := apps.Packages()
	require.NoError(t, err)
	for _, folder := range []string{"../../catalog/apps", "../../test/packages"} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Name() != "manifest.yaml" {
				return err
			}
			pkg, err := catalog.ReadFolder(os.DirFS(filepath.Dir(path)))
			require.NoError(t, err)
			for _, finding := range check.Package(t.Context(), pkg, shelf, Check) {
				require.NotContains(t, []check.Rule{check.Plan, check.UnknownCall}, finding.Rule, "%s: %s", path, finding)
			}
			return nil
		}))
	}
}
