package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/store"
)

// The file of a backup is a tar archive, in this order:
//
//	backup.json           File
//	parts/0000/000000.gz  the first piece of the first part, compressed, and so on
//	parts/0000/end.json   its partEnd
//	end.json              fileEnd
//
// The parts are, of one cluster after another, the snapshot of its etcd and the archives of its claims' files. Outside of Burano the file is sealed (internal/envelope).
const (
	fileFormat  = "burano-backup"
	fileVersion = 1
	headName    = "backup.json"
	endName     = "end.json"
	// pieceSize is how many bytes of a part are an entry of the archive: an entry begins with its size, and a part is not held in memory.
	pieceSize = 1 << 20
	// mostHead and mostEnd are how many bytes backup.json and the ends have.
	mostHead = 32 << 20
	mostEnd  = 4 << 10
	// mostPart is how many bytes a part has before it is compressed.
	mostPart = 1 << 40
)

// File describes the backup in a file.
type File struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Burano  string `json:"burano"` // the version that has written it

	EnvironmentID   string    `json:"environmentId"`
	EnvironmentName string    `json:"environmentName"`
	Reason          string    `json:"reason,omitempty"`
	Created         time.Time `json:"created"`
	Held            int64     `json:"held"`   // milliseconds for which pods were frozen
	Stored          int64     `json:"stored"` // bytes that its parts take where it was made

	Objects    map[string]any      `json:"objects"` // the model
	Packages   map[string][]string `json:"packages,omitempty"`
	Attributes []FileAttribute     `json:"attributes,omitempty"`
	Secrets    map[string][]byte   `json:"secrets,omitempty"`
	Clusters   []FileCluster       `json:"clusters,omitempty"`
	Missing    map[string]string   `json:"missing,omitempty"`
	Warnings   []string            `json:"warnings,omitempty"`
}

// FileAttribute is a store.Attribute of the environment.
type FileAttribute struct {
	ObjectID string          `json:"objectId"`
	Class    string          `json:"class"`
	Name     string          `json:"name"`
	Value    json.RawMessage `json:"value"`
}

// FileCluster is a cluster in a file.
type FileCluster struct {
	ObjectID string              `json:"objectId"`
	Class    string              `json:"class"`
	Name     string              `json:"name"`
	Keys     json.RawMessage     `json:"keys,omitempty"` // of the snapshot (nodes.PortableKeys)
	Claims   []store.BackupClaim `json:"claims,omitempty"`
}

// Parts is the number of parts in the file.
func (f *File) Parts() (count int) {
	for _, cluster := range f.Clusters {
		count += 1 + len(cluster.Claims)
	}
	return count
}

// partEnd follows a part.
type partEnd struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// fileEnd is the end of a file: one without it was cut off.
type fileEnd struct {
	Parts int `json:"parts"`
}

func partName(part int, name string) string { return fmt.Sprintf("parts/%04d/%s", part, name) }

func pieceName(part, piece int) string { return partName(part, fmt.Sprintf("%06d.gz", piece)) }

// Write writes a backup as a file, which is not sealed.
func (b Backups) Write(ctx context.Context, id string, to io.Writer) error {
	from, err := b.Get(ctx, id)
	if err != nil {
		return err
	}
	head := File{Format: fileFormat, Version: fileVersion, Burano: version.Version, EnvironmentID: from.EnvironmentID, EnvironmentName: from.EnvironmentName, Reason: from.Reason,
		Created: from.Created.Time().UTC(), Held: from.Held, Objects: from.Model.Objects, Packages: from.Model.Packages, Secrets: from.Parts.Secrets, Missing: from.Parts.Missing, Warnings: from.Parts.Warnings}
	for _, one := range from.Parts.Attributes {
		head.Attributes = append(head.Attributes, FileAttribute{one.ObjectID, one.Class, one.Name, json.RawMessage(one.Value)})
	}
	var parts []string
	for _, cluster := range from.Parts.Clusters {
		snapshot, err := b.Archive.Snapshot(ctx, cluster.Snapshot)
		if err != nil {
			return fmt.Errorf("read the snapshot of cluster %s: %w", cluster.Name, err)
		}
		one := FileCluster{ObjectID: cluster.ObjectID, Class: cluster.Class, Name: cluster.Name}
		if snapshot.Secrets != "" {
			if one.Keys, err = nodes.PortableKeys([]byte(snapshot.Secrets)); err != nil {
				return err
			}
		}
		head.Stored += snapshot.Stored
		parts = append(parts, snapshot.ID)
		for _, claim := range cluster.Claims {
			content, err := b.Archive.Snapshot(ctx, claim.Content)
			if err != nil {
				return fmt.Errorf("read the files of claim %s/%s: %w", claim.Namespace, claim.Name, err)
			}
			head.Stored += content.Stored
			parts = append(parts, claim.Content)
			claim.Content = ""
			one.Claims = append(one.Claims, claim)
		}
		head.Clusters = append(head.Clusters, one)
	}
	archive := tar.NewWriter(to)
	if err := addJSON(archive, headName, head); err != nil {
		return err
	}
	for i, part := range parts {
		if err := b.writePart(ctx, archive, i, part); err != nil {
			return err
		}
	}
	if err := addJSON(archive, endName, fileEnd{len(parts)}); err != nil {
		return err
	}
	return archive.Close()
}

func (b Backups) writePart(ctx context.Context, archive *tar.Writer, number int, id string) error {
	content, err := b.Archive.Open(ctx, id)
	if err != nil {
		return err
	}
	defer content.Close()
	pieces := &pieceWriter{archive: archive, part: number}
	compressed, err := gzip.NewWriterLevel(pieces, gzip.BestSpeed)
	if err != nil {
		return err
	}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(compressed, sum), content)
	if err != nil {
		return err
	}
	if err := errors.Join(compressed.Close(), pieces.flush()); err != nil {
		return err
	}
	return addJSON(archive, partName(number, endName), partEnd{size, hex.EncodeToString(sum.Sum(nil))})
}

func addJSON(archive *tar.Writer, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return addEntry(archive, name, text)
}

func addEntry(archive *tar.Writer, name string, content []byte) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}

// pieceWriter writes a part as entries of an archive.
type pieceWriter struct {
	archive     *tar.Writer
	part, piece int
	buffer      []byte
}

func (p *pieceWriter) Write(content []byte) (int, error) {
	written := len(content)
	for len(content) > 0 {
		take := min(pieceSize-len(p.buffer), len(content))
		p.buffer, content = append(p.buffer, content[:take]...), content[take:]
		if len(p.buffer) == pieceSize {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

func (p *pieceWriter) flush() error {
	if len(p.buffer) == 0 {
		return nil
	}
	err := addEntry(p.archive, pieceName(p.part, p.piece), p.buffer)
	p.piece, p.buffer = p.piece+1, p.buffer[:0]
	return err
}

// Check reads a file to its end, and returns its contents if all of them are unchanged.
func Check(from io.Reader) (File, error) {
	file, err := openFile(from, func([]byte) error { return nil })
	if err != nil {
		return File{}, err
	}
	for range file.Parts() {
		if _, err := file.part(io.Discard); err != nil {
			return File{}, err
		}
	}
	return file.File, file.end()
}

// openedFile is a file whose parts are read in their order.
type openedFile struct {
	File
	entries *tar.Reader
	next    int // number of the next part
}

// openFile reads the beginning of a file. admit is told backup.json before that is read.
func openFile(from io.Reader, admit func(head []byte) error) (*openedFile, error) {
	file := &openedFile{entries: tar.NewReader(from)}
	entry, err := file.entries.Next()
	if errors.Is(err, tar.ErrHeader) || err == io.EOF || err == nil && entry.Name != headName {
		return nil, fault.New(fault.Invalid, "It is no file of a backup, such as burano backup download writes")
	}
	if err != nil {
		return nil, cutOff("at its beginning", err)
	}
	text, err := door.ReadAll(file.entries, mostHead, headName)
	if door.IsExceeded(err) {
		return nil, fault.New(fault.TooLarge, "The file of the backup: %w", err)
	}
	if err != nil {
		return nil, cutOff("at its beginning", err)
	}
	if err := admit(text); err != nil {
		return nil, err
	}
	var written struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
		Burano  string `json:"burano"`
	}
	if err := json.Unmarshal(text, &written); err != nil || written.Format != fileFormat || written.Version < 1 {
		return nil, fault.New(fault.Invalid, "It is no file of a backup, such as burano backup download writes")
	}
	if written.Version > fileVersion {
		return nil, fault.New(fault.Invalid, "The file is of a newer Burano (%s) and has format %d. This Burano (%s) reads formats up to %d: upgrade it", door.Cut(written.Burano, 64), written.Version, version.Version, fileVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&file.File); err != nil {
		return nil, damaged("%s cannot be read: %w", headName, err)
	}
	return file, file.check()
}

// check refuses a description that Write does not write.
func (f *File) check() error {
	for i := range f.Clusters {
		cluster := &f.Clusters[i]
		if len(cluster.Keys) > 0 {
			keys, err := nodes.PortableKeys(cluster.Keys)
			if err != nil {
				return damaged("cluster %s: %w", cluster.Name, err)
			}
			cluster.Keys = keys
		}
		for _, claim := range cluster.Claims {
			if err := checkClaim(claim); err != nil {
				return damaged("claim %s/%s: %w", claim.Namespace, claim.Name, err)
			}
		}
	}
	for _, one := range f.Attributes {
		if !json.Valid(one.Value) {
			return damaged("the attribute %s of %s has no value", one.Name, one.ObjectID)
		}
	}
	return nil
}

func checkClaim(claim store.BackupClaim) error {
	var object corev1.PersistentVolumeClaim
	if err := json.Unmarshal(claim.Object, &object); err != nil {
		return fmt.Errorf("its description: %w", err)
	}
	if object.Namespace != claim.Namespace || object.Name != claim.Name {
		return fmt.Errorf("its description is of claim %s/%s", object.Namespace, object.Name)
	}
	if len(validation.IsDNS1123Label(claim.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(claim.Name)) > 0 {
		return errors.New("Kubernetes has no such names")
	}
	return nil
}

// part writes the next part as it was before it was compressed, and returns its checksum.
func (o *openedFile) part(to io.Writer) (checksum string, err error) {
	pieces := &pieceReader{entries: o.entries, part: o.next}
	target := &remembering{to: to}
	o.next++
	where := fmt.Sprintf("within part %d of %d", o.next, o.Parts())
	unpacked, err := gzip.NewReader(pieces)
	if err != nil {
		return "", cutOff(where, err)
	}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(target, sum), door.Reader(unpacked, mostPart, "a part of the backup"))
	switch {
	case target.err != nil:
		return "", target.err
	case door.IsExceeded(err):
		return "", fault.New(fault.TooLarge, "The file of the backup: %w", err)
	case err != nil:
		return "", cutOff(where, err)
	}
	checksum = hex.EncodeToString(sum.Sum(nil))
	if pieces.end == nil || pieces.end.Bytes != size || pieces.end.SHA256 != checksum {
		return "", damaged("part %d of %d is not as it was written", o.next, o.Parts())
	}
	return checksum, nil
}

// end makes sure that the file ends after the last part.
func (o *openedFile) end() error {
	entry, err := o.entries.Next()
	if err == nil && entry.Name != endName {
		return damaged("%s is where its end should be", entry.Name)
	}
	var end fileEnd
	if err == nil {
		err = readEnd(o.entries, &end)
	}
	if err != nil {
		return cutOff("after its last part", err)
	}
	if end.Parts != o.Parts() {
		return damaged("it has %d parts, and ends with a number of %d", o.Parts(), end.Parts)
	}
	if _, err := o.entries.Next(); err != io.EOF {
		return damaged("something follows its end")
	}
	return nil
}

func readEnd(from io.Reader, end any) error {
	text, err := door.ReadAll(from, mostEnd, "the end of a part")
	if err != nil {
		return err
	}
	return json.Unmarshal(text, end)
}

// pieceReader reads the pieces of a part, up to its end.
type pieceReader struct {
	entries     *tar.Reader
	part, piece int
	within      bool
	end         *partEnd
}

func (p *pieceReader) Read(into []byte) (int, error) {
	for p.end == nil {
		if p.within {
			n, err := p.entries.Read(into)
			if p.within = err != io.EOF; n > 0 || p.within {
				return n, ignoring(err, io.EOF)
			}
		}
		entry, err := p.entries.Next()
		switch {
		case err == io.EOF:
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		case entry.Name == pieceName(p.part, p.piece):
			p.piece, p.within = p.piece+1, true
		case entry.Name == partName(p.part, endName):
			var end partEnd
			if err := readEnd(p.entries, &end); err != nil {
				return 0, err
			}
			p.end = &end
		default:
			return 0, fmt.Errorf("%s is in the place of its next piece", entry.Name)
		}
	}
	return 0, io.EOF
}

func ignoring(err, ignored error) error {
	if err == ignored {
		return nil
	}
	return err
}

// remembering remembers why nothing more could be written: the file is not to blame.
type remembering struct {
	to  io.Writer
	err error
}

func (r *remembering) Write(content []byte) (n int, err error) {
	n, err = r.to.Write(content)
	r.err = err
	return n, err
}

func damaged(format string, args ...any) error {
	return fault.New(fault.Invalid, "The file of the backup is damaged: "+format, args...)
}

// cutOff is the fault of a file that cannot be read on.
func cutOff(where string, err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.Invalid, "The file of the backup ends early, %s (%w)", where, err)
	}
	return damaged("it cannot be read on, %s: %w", where, err)
}
