// Package claimdatatest has nodes whose volumes are maps.
package claimdatatest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/burano/burano/nodes/ssh"
)

// Nodes are nodes of a cluster.
type Nodes struct {
	mutex sync.Mutex
	// Files are the files of volumes, by the volumes' paths; Fill changes them.
	Files map[string]string
	// Said are the words between the caller and nodes, in their order: "n1 held", "n1 < copy".
	Said []string
	// Fails is called before each word of a node, and before any other script there.
	Fails func(node, word string) error

	copies map[string]string
	frozen map[string]bool // by the ids of pods
}

// Step runs work without more.
func Step(ctx context.Context, _ string, do func(ctx context.Context) error) error { return do(ctx) }

func (n *Nodes) note(node, word string) error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.Fails != nil {
		if err := n.Fails(node, word); err != nil {
			return err
		}
	}
	n.Said = append(n.Said, node+" "+word)
	return nil
}

// Left are the copies that were not removed.
func (n *Nodes) Left() (paths []string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for path := range n.copies {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// Frozen are the pods that do not run.
func (n *Nodes) Frozen() (pods []string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for pod := range n.frozen {
		pods = append(pods, pod)
	}
	return pods
}

// Stream simulates the scripts that claimdata runs on nodes.
func (n *Nodes) Stream(_ context.Context, node string, job ssh.Job) error {
	switch job.Name {
	case "copy volumes":
		return n.hold(node, job)
	case "read the copy of a volume":
		if err := n.note(node, "read "+filepath.Base(job.Args[0])); err != nil {
			return err
		}
		n.mutex.Lock()
		content, there := n.copies[job.Args[0]]
		n.mutex.Unlock()
		if !there {
			return fmt.Errorf("there is no copy %s", job.Args[0])
		}
		_, err := io.WriteString(job.Stdout, content)
		return err
	case "remove copies of volumes":
		n.mutex.Lock()
		defer n.mutex.Unlock()
		for path := range n.copies {
			if strings.HasPrefix(path, job.Args[0]+"/") {
				delete(n.copies, path)
			}
		}
		return nil
	case "end former copying of volumes":
		n.mutex.Lock()
		defer n.mutex.Unlock()
		for path := range n.copies {
			if strings.HasPrefix(path, filepath.Dir(job.Args[0])+"/") {
				delete(n.copies, path)
			}
		}
		return nil
	case "fill a volume":
		content, err := io.ReadAll(io.LimitReader(job.Input, 1<<20))
		if err == nil {
			err = n.note(node, "fill "+job.Args[0])
		}
		n.mutex.Lock()
		defer n.mutex.Unlock()
		if err == nil {
			n.Files[job.Args[0]] = string(content)
		}
		return err
	}
	return fmt.Errorf("nothing is known of %s", job.Name)
}

func (n *Nodes) hold(node string, job ssh.Job) error {
	heard := bufio.NewScanner(job.Input)
	say := func(word string) error {
		if err := n.note(node, word); err != nil {
			return err
		}
		_, err := fmt.Fprintln(job.Stdout, word)
		return err
	}
	hear := func(word string) error {
		if !heard.Scan() || heard.Text() != word {
			return fmt.Errorf("%s was not told to %s, and lets its pods go on", node, word)
		}
		return n.note(node, "< "+word)
	}
	thaw := n.freeze(job.Args)
	defer thaw()
	if err := say("held"); err != nil {
		return err
	}
	if err := hear("copy"); err != nil {
		return err
	}
	for _, one := range job.Args[2:] {
		volume, is := strings.CutPrefix(one, "volume:")
		if !is {
			continue
		}
		id, path, _ := strings.Cut(volume, ":")
		n.mutex.Lock()
		if n.copies == nil {
			n.copies = map[string]string{}
		}
		n.copies[job.Args[0]+"/"+id] = n.Files[path]
		size := len(n.Files[path])
		n.mutex.Unlock()
		if err := say(fmt.Sprintf("copied %s %d", id, size)); err != nil {
			return err
		}
	}
	if err := say("complete"); err != nil {
		return err
	}
	return hear("release")
}

// freeze stops the pods among the arguments of a script.
func (n *Nodes) freeze(args []string) (thaw func()) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.frozen == nil {
		n.frozen = map[string]bool{}
	}
	var pods []string
	for _, one := range args {
		if pod, is := strings.CutPrefix(one, "pod:"); is {
			n.frozen[pod] = true
			pods = append(pods, pod)
		}
	}
	return func() {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		for _, pod := range pods {
			delete(n.frozen, pod)
		}
	}
}
