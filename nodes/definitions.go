package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/nodes/kube"
)

// readings are documents of objects that were read, by their SHA-256, so that those that many clusters have are not read for each. Nobody changes the objects.
type readings struct {
	most  int                // how many are kept
	check func([]byte) error // before a document is read; nil for none

	mutex   sync.Mutex
	objects map[[sha256.Size]byte][]runtime.Object
	reading singleflight.Group // many clusters that begin together read a document once
}

// definitionFiles are those of nodes' images: the images of one release have the same ones, a megabyte of YAML, which is not fetched again either. Those of a few releases are kept.
var definitionFiles = readings{most: 8, check: withinBounds}

// commonManifests are our own, as far as they are the same for many clusters and hold nothing secret.
var commonManifests = readings{most: 64}

func (r *readings) known(digest []byte) ([]runtime.Object, bool) {
	if len(digest) != sha256.Size {
		return nil, false
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	objects, known := r.objects[[sha256.Size]byte(digest)]
	return objects, known
}

func (r *readings) read(document []byte) ([]runtime.Object, error) {
	digest := sha256.Sum256(document)
	if objects, known := r.known(digest[:]); known {
		return objects, nil
	}
	objects, err, _ := r.reading.Do(string(digest[:]), func() (any, error) { return r.parse(document, digest) })
	if err != nil {
		return nil, err
	}
	return objects.([]runtime.Object), nil
}

func (r *readings) parse(document []byte, digest [sha256.Size]byte) ([]runtime.Object, error) {
	if r.check != nil {
		if err := r.check(document); err != nil {
			return nil, err
		}
	}
	objects, err := kube.Objects(document)
	if err != nil {
		return nil, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.objects) >= r.most || r.objects == nil {
		r.objects = map[[sha256.Size]byte][]runtime.Object{}
	}
	r.objects[digest] = objects
	return objects, nil
}

const (
	// mostDefinitions is how many bytes a file of definitions may have: those of an image have 1 MiB.
	mostDefinitions = 8 << 20
	// mostDefined is how many keys and values it may have.
	mostDefined = 1_000_000
)

// withinBounds reports an error of a YAML document that is larger than it looks.
func withinBounds(text []byte) error {
	documents, err := door.NewYAML(text, door.Bounds{Bytes: mostDefinitions, Values: mostDefined})
	for err == nil {
		err = documents.Decode(&yaml.Node{})
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// readDefinitions returns the objects of a file of a node's image; nil where it has none.
func (d controlSteps) readDefinitions(ctx context.Context, node Node, what, file string) ([]runtime.Object, error) {
	said, err := d.script(ctx, node, "look for "+what, "if [ -e "+file+" ]; then sha256sum "+file+"; fi", nil)
	if err != nil || strings.TrimSpace(said) == "" {
		return nil, err
	}
	digest, _, _ := strings.Cut(said, " ")
	sum, _ := hex.DecodeString(digest)
	if objects, known := definitionFiles.known(sum); known {
		return objects, nil
	}
	client, err := d.cluster.connect(ctx, node)
	if err != nil {
		return nil, err
	}
	held := memory.Of(ctx).Answer()
	defer held.End()
	content := &door.Buffer{Limit: mostDefinitions, What: "the file " + file + " of " + node.Name, Grow: held.Grow}
	if err := client.Receive(ctx, file, content, mostDefinitions); err != nil {
		return nil, err
	}
	objects, err := definitionFiles.read(content.Bytes()) // the content is the node's alone
	if err != nil {
		return nil, fmt.Errorf("read the file %s of %s: %w", file, node.Name, err)
	}
	return objects, nil
}
