package kube

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/burano/burano/nodes/network"
)

//go:embed manifests/access.yaml
var accessManifests []byte

//go:embed manifests/coredns.yaml
var corednsManifests string

// Access are the objects that give rights to Burano, the API server and the publisher.
func Access() []byte { return accessManifests }

// CoreDNS are the objects of the cluster's DNS. resolvers are where other names are asked for: the nodes' own
// nameservers, of the versions of IP that pods have; without any, other names do not resolve. It has a replica on each of two nodes where there are as many minions.
// With tainted, other nodes have taints that it does not tolerate, and do not count where its replicas are spread.
func CoreDNS(addressing network.Addressing, resolvers []netip.Addr, minions int, tainted bool) []byte {
	forward, spread := "", ""
	if tainted {
		spread = "nodeTaintsPolicy: Honor, "
	}
	var words []string
	for _, resolver := range resolvers {
		if addressing.Four() || resolver.Is6() {
			words = append(words, resolver.String())
		}
	}
	if len(words) > 0 {
		forward = "        forward . " + strings.Join(words, " ") + "\n"
	}
	return []byte(strings.NewReplacer("DOMAIN", addressing.Domain, "ADDRESS", addressing.DNS().String(), "        FORWARD\n", forward, "SPREAD", spread, "REPLICAS\n", strconv.Itoa(max(1, min(minions, 2)))+"\n").Replace(corednsManifests))
}

// written is an object with its JSON, which does not have to be written each time that it is applied. Both stay as they are.
type written struct {
	*unstructured.Unstructured
	text []byte
}

// Objects reads YAML documents.
func Objects(documents ...[]byte) ([]runtime.Object, error) {
	var objects []runtime.Object
	for _, document := range documents {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(document), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("read Kubernetes objects: %w", err)
			}
			if len(object.Object) == 0 {
				continue
			}
			text, err := json.Marshal(object.Object)
			if err != nil {
				return nil, fmt.Errorf("write Kubernetes objects as JSON: %w", err)
			}
			objects = append(objects, &written{object, text})
		}
	}
	return objects, nil
}
