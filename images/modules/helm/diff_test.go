package main

import (
	"encoding/json"
	"strings"
	"testing"
)

const before = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {a.b/c: "1"}}
spec:
  replicas: 1
  template: {spec: {containers: [{name: web, image: "web:1", env: [{name: A, value: "1"}, {name: B, value: "2"}]}, {name: log, image: "log:1"}]}}
---
# nothing
---
apiVersion: v1
kind: Secret
metadata: {name: web}
data: {password: b2xk, same: c2FtZQ==}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {a: "1"}
`

const after = `
apiVersion: apps/v1beta1
kind: Deployment
metadata: {name: web, annotations: {a.b/c: "2"}}
spec:
  replicas: 2
  template: {spec: {containers: [{name: side, image: "side:1"}, {name: web, image: "web:2", env: [{name: B, value: "3"}]}, {name: log, image: "log:1"}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: web}
data: {password: bmV3, same: c2FtZQ==}
stringData: {further: {deep: clear}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: other}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {a: "1"}
`

func TestWhatAnUpgradeChanges(t *testing.T) {
	changes, more, err := compare(before, after)
	if err != nil || more != 0 {
		t.Fatal(more, err)
	}
	text, _ := json.Marshal(changes)
	for _, secret := range []string{"b2xk", "bmV3", "clear", "c2FtZQ"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is told: %s", secret, text)
		}
	}
	wanted := []change{
		{What: "changed", Kind: "Deployment", Name: "web", Fields: []field{
			{"apiVersion", "apps/v1", "apps/v1beta1"},
			{"metadata.annotations[a.b/c]", "1", "2"},
			{"spec.replicas", 1, 2},
			{"spec.template.spec.containers[side]", nil, map[string]any{"name": "side", "image": "side:1"}},
			{"spec.template.spec.containers[web].env[A]", map[string]any{"name": "A", "value": "1"}, nil},
			{"spec.template.spec.containers[web].env[B].value", "2", "3"},
			{"spec.template.spec.containers[web].image", "web:1", "web:2"},
		}},
		{What: "changed", Kind: "Secret", Name: "web", Fields: []field{
			{"data.password", masked, masked}, {"stringData", nil, map[string]any{"further": map[string]any{"deep": masked}}}}},
		{What: "added", Kind: "Service", Namespace: "other", Name: "web"},
		{What: "removed", Kind: "Service", Namespace: "shop", Name: "web"},
	}
	if told, _ := json.Marshal(wanted); string(told) != string(text) {
		t.Errorf("wanted %s\ngot    %s", told, text)
	}
}

func TestLongValuesAreCut(t *testing.T) {
	if text, is := brief(strings.Repeat("ä", mostValue)).(string); !is || len(text) > mostValue+5 || !strings.HasSuffix(text, "ä …") {
		t.Errorf("%d: %s", len(text), text)
	}
	if brief("short") != "short" {
		t.Error("a short value is another")
	}
}
