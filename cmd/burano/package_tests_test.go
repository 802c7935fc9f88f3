package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePackageThatTestsTheLanguagePasses(t *testing.T) {
	out, err := called(t, "", "package", "test", "../../test/packages/io.burano.test.Language")
	require.NoError(t, err, out)
	require.Contains(t, out, "ok    io.burano.test.LanguageTest.testSetUpRan\n")
	require.Contains(t, out, "7 passed, 0 failed\n")
	out, err = called(t, "", "package", "test", "../../test/packages/io.burano.test.Language", "--filter", "SetUp")
	require.NoError(t, err)
	require.Contains(t, out, "1 passed, 0 failed\n")
	_, err = called(t, "", "package", "test", "../../test/packages/io.burano.test.Language", "--filter", "nothing")
	require.EqualError(t, err, "there are no such tests")
}

func TestAFailingTestIsShownWithItsTrace(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "Classes"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "manifest.yaml"), []byte("Format: '1.4'\nType: Library\nFullName: a.T\nClasses: {a.T: T.yaml}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "Classes", "T.yaml"),
		[]byte("Name: a.T\nExtends: io.murano.test.TestFixture\nMethods:\n  testWrong:\n    Body:\n    - $.assertEqual(1, 2)\n"), 0o600))
	out, err := called(t, "", "package", "test", folder)
	require.EqualError(t, err, "1 tests failed")
	require.Contains(t, out, "FAIL  a.T.testWrong\n")
	require.Contains(t, out, "1 was wanted, and it is 2")
	require.Contains(t, out, "testWrong of type a.T")
}

func TestTheApplicationLibraryPassesItsTests(t *testing.T) {
	out, err := called(t, "", "package", "test", "../../test/packages/io.burano.test.Applications")
	require.NoError(t, err, out)
	require.Contains(t, out, "16 passed, 0 failed\n")
}
