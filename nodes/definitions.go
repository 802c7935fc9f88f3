package nodes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/burano/burano/nodes/kube"
)

// reading are files of definitions that were read, by their SHA-256: the images of one release have the same ones, a megabyte of YAML, which is neither fetched nor read
// again for each cluster. Nobody changes the objects.
var reading = struct {
	sync.Mutex
	objects map[string][]runtime.Object
}{objects: map[string][]runtime.Object{}}

// mostRead is how many files are kept: those of a few releases.
const mostRead = 8

// readDefinitions returns the objects of a file of a node's image; nil where it has none.
func (d *deployment) readDefinitions(ctx context.Context, node Node, what, file string) ([]runtime.Object, error) {
	said, err := d.script(ctx, node, "look for "+what, "if [ -e "+file+" ]; then sha256sum "+file+"; fi", nil)
	if err != nil || strings.TrimSpace(said) == "" {
		return nil, err
	}
	digest, _, _ := strings.Cut(said, " ")
	reading.Lock()
	objects, known := reading.objects[digest]
	reading.Unlock()
	if known {
		return objects, nil
	}
	client, err := d.cluster.connect(ctx, node)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	if err := client.Receive(ctx, file, &content); err != nil {
		return nil, err
	}
	if objects, err = kube.Objects(content.Bytes()); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content.Bytes()) // what the node says is of the node alone
	reading.Lock()
	defer reading.Unlock()
	if len(reading.objects) == mostRead {
		clear(reading.objects)
	}
	reading.objects[hex.EncodeToString(sum[:])] = objects
	return objects, nil
}
