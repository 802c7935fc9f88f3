package engine_test

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
)

// greedy is an application that takes what it can get.
const greedy = `
Namespaces: {=: org.greedy, std: io.murano}
Name: Greedy
Extends: std:Application
Properties:
  how: {Contract: $.string(), Default: forEver}
Methods:
  deploy:
    Body:
      - Match:
          forEver: [$.forEver()]
        Value: $.how
  forEver:
    Body:
      - While: true = true
        Do: [$x: 1 + 1]
`

// greedyHouse has the package org.greedy beside those of enginetest.
func greedyHouse(t *testing.T, house *house) *house {
	house.watched()
	uploaded, err := catalog.ReadFolder(fstest.MapFS{
		"manifest.yaml":       {Data: []byte("Format: 1.4\nType: Application\nFullName: org.greedy\nName: Greedy\nAuthor: tests\nTags: []\nClasses: {org.greedy.Greedy: Greedy.yaml}\n")},
		"Classes/Greedy.yaml": {Data: []byte(greedy)},
	})
	require.NoError(t, err)
	house.packages = append(house.packages, uploaded)
	return house
}

// greed is a greedy application.
func greed(how string) map[string]any {
	return map[string]any{"?": map[string]any{"id": "greedy", "type": "org.greedy.Greedy"}, "how": how}
}

func TestEndlessLoopsOfOneProjectLeaveWorkersToOthers(t *testing.T) {
	h := newHouse(t)
	h.stop()
	h.workers = 8
	greedyHouse(t, h).start()
	var looping []string
	for n := range 8 {
		looping = append(looping, h.submitAs("greedy", fmt.Sprint("loop-", n), greed("forEver")))
	}
	for n := range 6 {
		project := fmt.Sprint("modest-", n)
		began := time.Now()
		h.finished(h.submit(project, project))
		require.Less(t, time.Since(began), 15*time.Second)
	}
	for _, id := range looping {
		list, err := h.service.Deployments(t.Context(), as("greedy"), id)
		require.NoError(t, err)
		require.Nil(t, list[0].Finished)
		require.NoError(t, h.service.Cancel(t.Context(), as("greedy"), list[0].ID))
	}
	for _, id := range looping {
		h.finished(id)
	}
}
