package workloads

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/burano/burano/nodes"
)

// containerFile is a file that a container has at a path. Each is an immutable ConfigMap of its own, or a Secret: another content is another object, so pods
// get it by a rolling update, and a rollback has the former content.
type containerFile struct {
	path   string
	text   string
	secret bool
	mode   int32
	object string // the name of the Secret; "" for a ConfigMap (fileMap)
	host   string // its path on a standalone host; "" in a cluster
}

const (
	fileKey     = "content" // of the ConfigMap or Secret of a file
	defaultMode = 0o444
	// maxFile is the limit of Kubernetes for a ConfigMap or a Secret, less its metadata, in bytes.
	maxFile = 1<<20 - 8<<10
)

// files reads the files of a container: path → text, or path → {text, secret, mode}.
func (v values) files() (files []containerFile, err error) {
	given, _ := v("files").(map[string]any)
	for _, at := range slices.Sorted(maps.Keys(given)) {
		one, wrong := fileOf(at, given[at])
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("the file %s: %w", at, wrong))
		}
		files = append(files, one)
	}
	return files, err
}

func fileOf(at string, given any) (containerFile, error) {
	one := containerFile{path: at, mode: defaultMode}
	if !path.IsAbs(at) || path.Clean(at) != at || at == "/" {
		return one, errors.New("its key is not the whole path of a file, such as /etc/app/app.conf")
	}
	switch given := given.(type) {
	case string:
		one.text = given
	case map[string]any:
		var is bool
		if one.text, is = given["text"].(string); !is {
			return one, errors.New("it needs its text: write {text: ..., secret: true, mode: '0440'}")
		}
		for _, key := range slices.Sorted(maps.Keys(given)) {
			switch value := given[key]; key {
			case "text":
			case "secret":
				if one.secret, is = value.(bool); !is {
					return one, errors.New("secret is true or false")
				}
			case "mode":
				text, _ := value.(string)
				mode, err := strconv.ParseInt(text, 8, 32)
				if err != nil || mode < 0 || mode > 0o777 {
					return one, fmt.Errorf("mode is %v: write permissions as an octal text, such as '0440'", value)
				}
				one.mode = int32(mode)
			default:
				return one, fmt.Errorf("there is no %s: a file has text, secret and mode", key)
			}
		}
	default:
		return one, fmt.Errorf("it is %T: write its text, or {text: ..., secret: true, mode: '0440'}", given)
	}
	if len(one.text) > maxFile {
		return one, fmt.Errorf("it has %d bytes, and Kubernetes keeps files of at most %d: put it into the image or a volume", len(one.text), maxFile)
	}
	return one, nil
}

// onHost are the files of a container of a pod on a standalone host: they lie in a folder of the pod on the server, and another text or mode is another file there.
func (c *container) onHost(pod string) (files []nodes.StandaloneFile) {
	c.options.files = slices.Clone(c.options.files)
	for i := range c.options.files {
		file := &c.options.files[i]
		sum := sha256.Sum256(fmt.Appendf(nil, "%o %s", file.mode, file.text))
		one := nodes.StandaloneFile{Pod: pod, Name: hex.EncodeToString(sum[:8]), Content: []byte(file.text), Mode: os.FileMode(file.mode)}
		files, file.host = append(files, one), one.Path()
	}
	return files
}

// fileMap is the ConfigMap of a file without secrets.
func (p podSpec) fileMap(one container, file containerFile) *corev1.ConfigMap {
	sum := sha256.Sum256([]byte(file.text))
	name := kubeName(fmt.Sprintf("%.25s-%.20s", p.name+"-"+one.name, path.Base(file.path))) + "-" + hex.EncodeToString(sum[:5])
	fixed := true
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.inNamespace(), Labels: map[string]string{LabelPod: p.id, labelContainer: kubeName(one.name)}},
		Immutable:  &fixed, Data: map[string]string{fileKey: file.text},
	}
}

// fileMaps are the ConfigMaps of the containers' files, each once, by name.
func (p podSpec) fileMaps(containers []container) (maps []*corev1.ConfigMap) {
	for one := range partsOf(containers) {
		for _, file := range one.options.files {
			if made := p.fileMap(*one, file); !file.secret && !slices.ContainsFunc(maps, func(other *corev1.ConfigMap) bool { return other.Name == made.Name }) {
				maps = append(maps, made)
			}
		}
	}
	slices.SortFunc(maps, func(a, b *corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	return maps
}

// mountFiles mounts the files of a container. Kubernetes cannot mount a whole ConfigMap at a file, so each is mounted by its key.
func (p podSpec) mountFiles(one container, built *corev1.Container, spec *corev1.PodSpec) {
	for i, file := range one.options.files {
		name := fmt.Sprintf("%.48s-f%d", built.Name, i)
		volume, part := corev1.Volume{Name: name}, fileKey
		if file.host != "" {
			kind := corev1.HostPathFile
			volume.HostPath, part = &corev1.HostPathVolumeSource{Path: file.host, Type: &kind}, ""
		} else if file.secret {
			volume.Secret = &corev1.SecretVolumeSource{SecretName: file.object, DefaultMode: &file.mode}
		} else {
			volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: p.fileMap(one, file).Name}, DefaultMode: &file.mode}
		}
		spec.Volumes = append(spec.Volumes, volume)
		built.VolumeMounts = append(built.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: file.path, SubPath: part, ReadOnly: true})
	}
}
