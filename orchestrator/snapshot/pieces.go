package snapshot

import (
	"context"
	"fmt"
	"io"

	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// place stores and seals the pieces of one snapshot.
type place interface {
	size() int // of a piece, before it is sealed
	put(ctx context.Context, number int64, content []byte) error
	get(ctx context.Context, number int64) (content []byte, found bool, err error)
}

func (a *Archive) placeOf(row store.Snapshot) (place, error) {
	if row.Container == "" {
		return inDatabase{a, row.ID}, nil
	}
	if a.objects == nil {
		return nil, fmt.Errorf("snapshot %s is in %s, and there is no way to objects", row.ID, row.Container)
	}
	key, err := secret.Under(row.PieceKey)
	return inContainer{a, row.ID, row.Container, key}, err
}

// inDatabase keeps pieces as rows, sealed under the server's keys.
type inDatabase struct {
	archive *Archive
	id      string
}

func (d inDatabase) size() int { return pieceSize }

func (d inDatabase) put(ctx context.Context, number int64, content []byte) error {
	return d.archive.AddPiece(ctx, d.id, number, d.archive.sealer.Seal(store.SnapshotOwner(d.id, number), content))
}

func (d inDatabase) get(ctx context.Context, number int64) ([]byte, bool, error) {
	sealed, found, err := d.archive.Piece(ctx, d.id, number)
	if err != nil || !found {
		return nil, false, err
	}
	content, err := d.archive.sealer.Open(store.SnapshotOwner(d.id, number), sealed)
	return content, true, err
}

// inContainer keeps pieces as objects, sealed under a key of the snapshot's own: the server's keys may change, and the key is in its row,
// which is sealed again then.
type inContainer struct {
	archive       *Archive
	id, container string
	key           secret.Own
}

// containerError is the error when a container could not be used.
type containerError struct{ error }

func (e *containerError) Unwrap() error { return e.error }

// objectName is a piece's name in its container.
func objectName(id string, number int64) string { return fmt.Sprintf("%s/%06d", id, number) }

func (c inContainer) size() int { return objectSize }

func (c inContainer) put(ctx context.Context, number int64, content []byte) error {
	sealed := c.key.Seal(store.SnapshotOwner(c.id, number), content)
	if err := c.archive.CountPiece(ctx, c.id, number, int64(len(sealed))); err != nil {
		return err
	}
	if err := c.archive.objects.PutObject(ctx, c.container, objectName(c.id, number), sealed); err != nil {
		return &containerError{err}
	}
	return nil
}

func (c inContainer) get(ctx context.Context, number int64) ([]byte, bool, error) {
	sealed, found, err := c.archive.objects.Object(ctx, c.container, objectName(c.id, number))
	if err != nil {
		return nil, false, &containerError{err}
	}
	if !found {
		return nil, false, nil
	}
	content, err := c.key.Open(store.SnapshotOwner(c.id, number), sealed)
	return content, true, err
}

// pieces seals the written data, piece by piece.
type pieces struct {
	place  place
	ctx    context.Context
	number int64
	buffer []byte
	err    error
}

func (p *pieces) Write(content []byte) (int, error) {
	written := len(content)
	for len(content) > 0 {
		take := min(p.place.size()-len(p.buffer), len(content))
		p.buffer, content = append(p.buffer, content[:take]...), content[take:]
		if len(p.buffer) == p.place.size() {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

func (p *pieces) flush() error {
	if p.err == nil && len(p.buffer) > 0 {
		p.err = p.place.put(p.ctx, p.number, p.buffer)
		p.number, p.buffer = p.number+1, p.buffer[:0]
	}
	return p.err
}

// reading opens piece after piece. The compressed form shows that all are there: it ends with a sum.
type reading struct {
	place  place
	ctx    context.Context
	number int64
	rest   []byte
}

func (r *reading) Read(into []byte) (int, error) {
	if len(r.rest) == 0 {
		content, found, err := r.place.get(r.ctx, r.number)
		if err != nil {
			return 0, err
		}
		if !found {
			return 0, io.EOF
		}
		r.rest = content
		r.number++
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
