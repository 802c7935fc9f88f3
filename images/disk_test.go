package images

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func needPrograms(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed: `make image-disk` installs it", name)
		}
	}
}

func TestADiskHasItsPartitionsLoadersAndFiles(t *testing.T) {
	needPrograms(t, "sfdisk", "mkfs.ext4", "debugfs", "grub-mkimage", "mformat", "mdir")
	work := t.TempDir()
	root, raw := filepath.Join(work, "root"), filepath.Join(work, "disk.raw")
	write(t, filepath.Join(root, "etc", "note"), "hello")
	require.NoError(t, os.Chmod(root, 0o755))
	output := newTail()
	size, err := roomFor(root)
	require.NoError(t, err)
	require.NoError(t, partition(t.Context(), raw, size, output), output.String())
	require.NoError(t, makeRoot(t.Context(), root, raw, size, output), output.String())
	require.NoError(t, makeLoaders(t.Context(), work, raw, output), output.String())

	said, err := exec.Command("sfdisk", "--json", raw).Output()
	require.NoError(t, err)
	var table struct {
		PartitionTable struct {
			Label      string
			Partitions []struct{ Start, Size int64 }
		}
	}
	require.NoError(t, json.Unmarshal(said, &table))
	require.Equal(t, "gpt", table.PartitionTable.Label)
	require.Len(t, table.PartitionTable.Partitions, 3)
	require.Equal(t, size/sector, table.PartitionTable.Partitions[2].Size)

	said, err = exec.Command("debugfs", "-R", "cat /etc/note", raw+fmt.Sprintf("?offset=%d", rootStart)).Output()
	require.NoError(t, err)
	require.Equal(t, "hello", string(said))
	said, err = exec.Command("mdir", "-b", "-/", "-i", fmt.Sprintf("%s@@%d", raw, espStart), "::").Output()
	require.NoError(t, err)
	require.Contains(t, string(said), "/EFI/BOOT/BOOTX64.EFI")

	content, err := os.ReadFile(raw)
	require.NoError(t, err)
	require.Equal(t, []byte{0x55, 0xaa}, content[510:512])
	core, err := os.ReadFile(filepath.Join(work, "core.img"))
	require.NoError(t, err)
	require.Equal(t, core[sector:], content[biosStart+sector:biosStart+len(core)], "the loader lies in its partition")
}

func TestAnUnknownLoaderIsRefused(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "boot.img"), "short")
	write(t, filepath.Join(folder, "core.img"), strings.Repeat("x", 2*sector))
	err := writeBIOSLoader(filepath.Join(folder, "disk"), filepath.Join(folder, "boot.img"), filepath.Join(folder, "core.img"))
	require.ErrorContains(t, err, "this GRUB is not known")
}

func TestTheListOfFilesIsTheSameForTheSameContent(t *testing.T) {
	lists := map[string]bool{}
	for _, age := range []time.Duration{0, time.Hour} {
		root, list := t.TempDir(), filepath.Join(t.TempDir(), "files")
		require.NoError(t, os.Chmod(root, 0o755))
		write(t, filepath.Join(root, "etc", "b"), "two")
		write(t, filepath.Join(root, "a"), "one")
		require.NoError(t, os.Symlink("a", filepath.Join(root, "c")))
		require.NoError(t, os.Chtimes(filepath.Join(root, "a"), time.Now().Add(-age), time.Now().Add(-age)))
		require.NoError(t, oneTime(root))
		info, err := os.Stat(filepath.Join(root, "a"))
		require.NoError(t, err)
		require.Zero(t, info.ModTime().Unix())
		require.NoError(t, listFiles(root, list))
		content, err := os.ReadFile(list)
		require.NoError(t, err)
		lists[string(content)] = true
		require.Regexp(t, `(?m)^-rw-r--r-- \d+:\d+ 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed /a$`, string(content))
		require.Regexp(t, `(?m)^L\S+ \d+:\d+ - /c -> a$`, string(content))
	}
	require.Len(t, lists, 1)
}

func TestABillOfMaterialsNamesPackagesAndModules(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.Symlink(program, filepath.Join(folder, "program")))
	manifest := Manifest{SHA256: "abc", Key: strings.Repeat("k", 64), Debian: "bookworm", Packages: map[string]string{"libc6": "2.36-9+deb12u14", "adduser": "3.1"}}
	bill, err := newBill(manifest, []piece{{folder: folder}})
	require.NoError(t, err)
	again, err := newBill(manifest, []piece{{folder: folder}, {folder: folder}})
	require.NoError(t, err)
	require.Equal(t, bill, again, "it is the same each time, and names a module once")

	ids, locators := map[string]bool{}, []string{}
	for _, p := range bill.Packages {
		require.Regexp(t, `^SPDXRef-[A-Za-z0-9.-]+$`, p.ID)
		require.False(t, ids[p.ID], "%s is there twice", p.ID)
		ids[p.ID] = true
		for _, reference := range p.References {
			locators = append(locators, reference.Locator)
		}
	}
	require.Contains(t, locators, "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?distro=bookworm")
	require.Contains(t, strings.Join(locators, "\n"), "pkg:golang/std@go1")
	for _, relation := range bill.Relationships {
		require.True(t, ids[relation.Related])
	}
}

func TestADeliveredDiskHasItsSumsAndIsNotWrittenTwice(t *testing.T) {
	cached, out := t.TempDir(), filepath.Join(t.TempDir(), "build", "node.qcow2")
	write(t, filepath.Join(cached, diskFile), "a disk")
	write(t, filepath.Join(cached, billFile), "{}")
	write(t, filepath.Join(cached, filesFile), "files")
	manifest := Manifest{SHA256: "abc", Size: 6, Format: QCOW2, Key: "k"}
	require.NoError(t, writeJSON(filepath.Join(cached, manifestFile), manifest))
	b := builder{out: out, format: QCOW2}
	got, err := b.deliverDisk(t.Context(), piece{folder: cached})
	require.NoError(t, err)
	require.Equal(t, manifest, got)
	check := exec.Command("sha256sum", "--check", "--quiet", filepath.Base(out)+".sha256")
	check.Dir = filepath.Dir(out)
	said, err := check.CombinedOutput()
	require.NoError(t, err, string(said))
	before, err := os.Stat(out)
	require.NoError(t, err)

	_, err = b.deliverDisk(t.Context(), piece{folder: cached})
	require.NoError(t, err)
	again, err := os.Stat(out)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, again))
}
