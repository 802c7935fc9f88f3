package images

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A disk has a GUID partition table with three partitions: GRUB's for machines with a BIOS, UEFI's, and the root file system, which comes last and grows
// with the disk.
const (
	sector         = 512
	mebibyte       = 1 << 20
	biosStart      = 1 * mebibyte
	biosSize       = 1 * mebibyte
	espStart       = biosStart + biosSize
	espSize        = 16 * mebibyte
	rootStart      = espStart + espSize
	backupTable    = 1 * mebibyte
	journalSize    = 64 * mebibyte
	rootUUID       = "b0a40000-0000-4000-8000-000000000003"
	diskFile       = "node-image.qcow2"
	rootLabel      = "root"
	bootParameters = "root=LABEL=" + rootLabel + " rw console=tty0 console=ttyS0,115200 net.ifnames=0 quiet loglevel=4 systemd.show_status=auto systemd.swap=no panic=10 random.trust_cpu=on"
)

// partitions is the input of sfdisk. All ids are fixed: the same content gives the same table.
func partitions(rootSize int64) string {
	return fmt.Sprintf(`label: gpt
label-id: B0A40000-0000-4000-8000-000000000000
first-lba: %d
start=%d, size=%d, type=21686148-6449-6E6F-744E-656564454649, uuid=B0A40000-0000-4000-8000-000000000001, name=bios
start=%d, size=%d, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, uuid=B0A40000-0000-4000-8000-000000000002, name=esp
start=%d, size=%d, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, uuid=B0A40000-0000-4000-8000-000000000004, name=root
`, biosStart/sector, biosStart/sector, biosSize/sector, espStart/sector, espSize/sector, rootStart/sector, rootSize/sector)
}

// grubModules are the modules that the loader needs to find kernel and initramfs.
var grubModules = []string{"part_gpt", "ext2", "normal", "linux", "search", "search_label", "configfile", "serial", "terminal", "echo", "test"}

const grubSearch = `search --no-floppy --label ` + rootLabel + ` --set root
set prefix=($root)/boot/grub
configfile $prefix/grub.cfg
`

func grubMenu(kernel string) string {
	return fmt.Sprintf(`serial --unit=0 --speed=115200
terminal_input console serial
terminal_output console serial
set timeout=0
set gfxpayload=text
menuentry node {
  linux /boot/vmlinuz-%[1]s %[2]s
  initrd /boot/initrd.img-%[1]s
}
`, kernel, bootParameters)
}

// disk makes the bootable disk, its manifest, its bill of materials and the list of its files. It is a compressed qcow2; a raw disk is
// unpacked from it. Nothing is mounted, and no machine runs.
func (b *builder) disk(ctx context.Context, system piece, programs []piece, containers piece) (piece, error) {
	if b.toolchain.architecture != "amd64" {
		return piece{}, fmt.Errorf("a disk is made for amd64 only, and this is %s: its loaders for BIOS and UEFI are amd64's", b.toolchain.architecture)
	}
	key := newKey()
	key.add("disk 1", system.key, containers.key, partitions(0), grubMenu(""), grubSearch)
	for _, program := range programs {
		key.add(program.key)
	}
	if err := b.addElements(key, "elements", "machine"); err != nil {
		return piece{}, err
	}
	id := key.String()
	elements := append(append([]element{}, b.elements...), b.machine...)
	doing := fmt.Sprintf("applying %d elements and making the disk", len(elements))
	return b.cache.piece(b.progress, "disk", id, doing, func(out string, output io.Writer) error {
		work := filepath.Join(out, "work")
		err := b.makeDisk(ctx, work, out, elements, system, programs, containers, output)
		if err == nil {
			err = b.describeDisk(ctx, id, out, system, programs)
		}
		return errors.Join(err, os.RemoveAll(work))
	})
}

func (b *builder) makeDisk(ctx context.Context, work, out string, elements []element, system piece, programs []piece, containers piece, output io.Writer) error {
	root, raw := filepath.Join(work, "root"), filepath.Join(work, "disk.raw")
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	if err := b.fill(ctx, root, elements, system, programs, containers, output); err != nil {
		return err
	}
	kernel, err := onlyKernel(root)
	if err != nil {
		return err
	}
	if err := errors.Join(
		os.MkdirAll(filepath.Join(root, "boot", "grub"), 0o755),
		os.WriteFile(filepath.Join(root, "boot", "grub", "grub.cfg"), []byte(grubMenu(kernel)), 0o644),
	); err != nil {
		return err
	}
	// Files that the tar leaves out are not on the disk either.
	for _, folder := range []string{"dev", "run", "tmp"} {
		if err := emptyFolder(filepath.Join(root, folder)); err != nil {
			return err
		}
	}
	if err := oneTime(root); err != nil {
		return err
	}
	if err := listFiles(root, filepath.Join(out, filesFile)); err != nil {
		return err
	}
	size, err := roomFor(root)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return partition(ctx, raw, size, output) },
		func() error { return makeRoot(ctx, root, raw, size, output) },
		func() error { return makeLoaders(ctx, work, raw, output) },
		func() error {
			return runCommand(exec.CommandContext(ctx, "qemu-img", "convert", "-c", "-O", string(QCOW2), raw, filepath.Join(out, diskFile)), output)
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func onlyKernel(root string) (string, error) {
	kernels, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	if err != nil {
		return "", err
	}
	if len(kernels) != 1 {
		return "", fmt.Errorf("one kernel is wanted in /boot, there are %d", len(kernels))
	}
	version := strings.TrimPrefix(filepath.Base(kernels[0]), "vmlinuz-")
	if _, err := os.Stat(filepath.Join(root, "boot", "initrd.img-"+version)); err != nil {
		return "", fmt.Errorf("the elements have made no initramfs: %w", err)
	}
	return version, nil
}

func emptyFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// roomFor is the size of a file system for a tree, in whole mebibytes: its blocks and inodes, the journal, and a little, as it grows at the first boot.
func roomFor(root string) (int64, error) {
	const block, inode = 4096, 512
	var needed int64
	err := filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		needed += inode
		if info.Mode().IsRegular() {
			needed += (info.Size() + block - 1) / block * block
		} else {
			needed += block
		}
		return nil
	})
	needed += needed/25 + journalSize + 128*mebibyte
	return (needed + mebibyte - 1) / mebibyte * mebibyte, err
}

func partition(ctx context.Context, raw string, rootSize int64, output io.Writer) error {
	file, err := os.Create(raw)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(rootStart+rootSize+backupTable), file.Close()); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "sfdisk", "--quiet", raw)
	command.Stdin = strings.NewReader(partitions(rootSize))
	return runCommand(command, output)
}

// makeRoot writes the file system into its partition. GRUB 2.06 cannot read the two features that are switched off.
func makeRoot(ctx context.Context, root, raw string, size int64, output io.Writer) error {
	command := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-L", rootLabel, "-U", rootUUID, "-m", "1", "-J", fmt.Sprintf("size=%d", journalSize/mebibyte),
		"-O", "^metadata_csum_seed,^orphan_file",
		"-E", fmt.Sprintf("offset=%d,lazy_itable_init=1,root_owner=0:0,hash_seed=%s", int64(rootStart), rootUUID),
		"-d", root, raw, fmt.Sprintf("%dM", size/mebibyte))
	command.Env = append(os.Environ(), "E2FSPROGS_FAKE_TIME=1")
	return runCommand(command, output)
}

// makeLoaders writes GRUB for machines with a BIOS and with UEFI.
func makeLoaders(ctx context.Context, work, raw string, output io.Writer) error {
	search, core, efi := filepath.Join(work, "search.cfg"), filepath.Join(work, "core.img"), filepath.Join(work, "BOOTX64.EFI")
	if err := os.WriteFile(search, []byte(grubSearch), 0o644); err != nil {
		return err
	}
	image := func(platform, out string, modules ...string) error {
		arguments := append([]string{"-O", platform, "-o", out, "-c", search, "-p", "/boot/grub"}, append(modules, grubModules...)...)
		return runCommand(exec.CommandContext(ctx, "grub-mkimage", arguments...), output)
	}
	if err := errors.Join(image("i386-pc", core, "biosdisk"), image("x86_64-efi", efi, "fat", "efi_gop", "all_video")); err != nil {
		return err
	}
	if err := writeBIOSLoader(raw, "/usr/lib/grub/i386-pc/boot.img", core); err != nil {
		return fmt.Errorf("write GRUB for BIOS: %w", err)
	}
	esp := fmt.Sprintf("%s@@%d", raw, espStart)
	for _, arguments := range [][]string{
		{"mformat", "-i", esp, "-T", fmt.Sprint(espSize / sector), "-h", "16", "-s", "32", "-N", "b0a40002", "-v", "ESP", "::"},
		{"mmd", "-i", esp, "::/EFI", "::/EFI/BOOT"},
		{"mcopy", "-i", esp, efi, "::/EFI/BOOT/BOOTX64.EFI"},
	} {
		if err := runCommand(exec.CommandContext(ctx, arguments[0], arguments[1:]...), output); err != nil {
			return err
		}
	}
	return nil
}

// writeBIOSLoader does the work of grub-bios-setup, without a device: boot.img goes before the partition table and contains the place of core.img,
// core.img goes into the partition for it.
func writeBIOSLoader(raw, bootPath, corePath string) error {
	const (
		kernelSector    = 0x5c        // in boot.img: the sector of core.img
		driveCheck      = 0x66        // in boot.img: a jump that hard disks go without
		firstBlock      = sector - 12 // in core.img: where its second sector is
		partitionsBegin = 440
	)
	boot, err := os.ReadFile(bootPath)
	if err != nil {
		return err
	}
	core, err := os.ReadFile(corePath)
	if err != nil {
		return err
	}
	if len(boot) != sector || len(core) < sector || len(core) > biosSize {
		return fmt.Errorf("boot.img has %d bytes and core.img %d: this GRUB is not known", len(boot), len(core))
	}
	binary.LittleEndian.PutUint64(boot[kernelSector:], biosStart/sector)
	copy(boot[driveCheck:], []byte{0x90, 0x90})
	binary.LittleEndian.PutUint64(core[firstBlock:], biosStart/sector+1)
	file, err := os.OpenFile(raw, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, first := file.WriteAt(boot[:partitionsBegin], 0)
	_, second := file.WriteAt(core, biosStart)
	return errors.Join(first, second, file.Close())
}

// describeDisk writes manifest and bill of materials.
func (b *builder) describeDisk(ctx context.Context, key, out string, system piece, programs []piece) error {
	disk := filepath.Join(out, diskFile)
	manifest, err := b.describe(ctx, key, system, disk)
	if err != nil {
		return err
	}
	manifest.Format = QCOW2
	if manifest.DiskSize, err = diskSize(ctx, disk); err != nil {
		return err
	}
	bill, err := newBill(manifest, programs)
	if err != nil {
		return err
	}
	return errors.Join(writeJSON(filepath.Join(out, billFile), bill), writeJSON(filepath.Join(out, manifestFile), manifest))
}

func diskSize(ctx context.Context, disk string) (int64, error) {
	output, err := exec.CommandContext(ctx, "qemu-img", "info", "--output=json", disk).Output()
	if err != nil {
		return 0, fmt.Errorf("look at the disk: %w", err)
	}
	var info struct {
		Size int64 `json:"virtual-size"`
	}
	return info.Size, json.Unmarshal(output, &info)
}

// deliverDisk copies the disk and its descriptions to the target, unless they are there.
func (b *builder) deliverDisk(ctx context.Context, disk piece) (Manifest, error) {
	var manifest Manifest
	if err := readJSON(filepath.Join(disk.folder, manifestFile), &manifest); err != nil {
		return Manifest{}, fmt.Errorf("read the manifest (delete %s to have the disk made again): %w", disk.folder, err)
	}
	manifestPath := b.out + ".json"
	var there Manifest
	if err := readJSON(manifestPath, &there); err == nil && there.Key == manifest.Key && there.Format == b.format {
		// The manifest is removed before a disk is replaced and written after it, so the two belong together.
		if info, err := os.Stat(b.out); err == nil && info.Size() == there.Size {
			return there, nil
		}
	}
	fail := func(err error) (Manifest, error) {
		return Manifest{}, fmt.Errorf("write the disk to %s: %w", b.out, err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(b.out), 0o755), removeFile(manifestPath)); err != nil {
		return fail(err)
	}
	if b.format == Raw {
		output := newTail()
		if err := runCommand(exec.CommandContext(ctx, "qemu-img", "convert", "-O", string(Raw), filepath.Join(disk.folder, diskFile), b.out), output); err != nil {
			return fail(fmt.Errorf("%w: %s", err, output))
		}
		var err error
		if manifest.SHA256, manifest.Size, err = checksum(b.out); err != nil {
			return fail(err)
		}
		manifest.Format = Raw
	} else if err := copyFile(filepath.Join(disk.folder, diskFile), b.out); err != nil {
		return fail(err)
	}
	bill, files := b.out+".spdx.json", b.out+".files"
	if err := errors.Join(
		copyFile(filepath.Join(disk.folder, billFile), bill),
		copyFile(filepath.Join(disk.folder, filesFile), files),
	); err != nil {
		return fail(err)
	}
	if err := writeSums(b.out+".sha256", b.out, bill, files); err != nil {
		return fail(err)
	}
	if err := writeJSON(manifestPath, manifest); err != nil {
		return fail(err)
	}
	return manifest, nil
}

// writeSums writes the checksums of files in the form that sha256sum --check reads.
func writeSums(to string, files ...string) error {
	var lines bytes.Buffer
	for _, file := range files {
		sum, _, err := checksum(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, filepath.Base(file))
	}
	return os.WriteFile(to, lines.Bytes(), 0o644)
}

func readJSON(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}
