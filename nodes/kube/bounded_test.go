package kube_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/nodes/kube"
)

// hostileServer is a client of an API server that answers as told.
func hostileServer(t *testing.T, answer http.HandlerFunc) (*kubernetes.Clientset, *rest.Config) {
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	config := kube.Bounded(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client, config
}

// repeated writes text again and again until the client has gone.
func repeated(w io.Writer, text string) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

func TestAnAnswerOfTheAPIServerWithoutEndEnds(t *testing.T) {
	zeros := strings.Repeat("0", 1<<16)
	for name, one := range map[string]struct {
		kind, begin, more string
		status            int
		packed            bool
	}{
		"a text":                             {kind: "application/json", begin: `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"`, more: zeros},
		"a text of zeros, compressed":        {kind: "application/json", begin: `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"`, more: zeros, packed: true},
		"pods with nothing in them":          {kind: "application/json", begin: `{"kind":"PodList","apiVersion":"v1","items":[{}`, more: strings.Repeat(",{}", 1<<10)},
		"containers with nothing in them":    {kind: "application/json", begin: `{"kind":"PodList","apiVersion":"v1","items":[{"spec":{"containers":[{}`, more: strings.Repeat(",{}", 1<<10)},
		"lists in lists":                     {kind: "application/json", more: strings.Repeat("[", 1<<10)},
		"protobuf with nothing in each item": {kind: runtime.ContentTypeProtobuf, begin: "k8s\x00\x12\xff\xff\xff\x0f", more: strings.Repeat("\x12\x00", 1<<10)},
		"YAML":                               {kind: "application/yaml", begin: "a: ", more: zeros},
		"an error":                           {kind: "application/json", begin: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"`, more: zeros, status: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := hostileServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", one.kind)
				to := io.Writer(w)
				if one.packed {
					w.Header().Set("Content-Encoding", "gzip")
					to = gzip.NewWriter(w)
				}
				w.WriteHeader(max(one.status, http.StatusOK))
				_, _ = io.WriteString(to, one.begin)
				repeated(to, one.more)
			})
			_, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			require.ErrorContains(t, err, "has more than")
		})
	}
}

func TestManyObjectsInFewBytesOfProtobufAreNotDecoded(t *testing.T) {
	list := corev1.PodList{Items: make([]corev1.Pod, 500_000)}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	small, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), &corev1.PodList{Items: list.Items[:1000]})
	require.NoError(t, err)
	large, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), &list)
	require.NoError(t, err)
	client, _ := hostileServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if r.URL.Query().Get("limit") != "" {
			_, _ = w.Write(small)
			return
		}
		_, _ = w.Write(large)
	})
	found, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, found.Items, 1000)
	_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.True(t, door.IsExceeded(err), "%v", err)
}

func TestAWatchGoesOnUntilAnEventHasNoEnd(t *testing.T) {
	const events = 3_000
	event := `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","annotations":{"b":"` + strings.Repeat("x", 100_000) + `"}}}}` + "\n"
	client, _ := hostileServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range events { // more in all than one answer may have
			if _, err := io.WriteString(w, event); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{}`)
		repeated(w, strings.Repeat(",{}", 1<<10))
	})
	watch, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer watch.Stop()
	seen := 0
	for event := range watch.ResultChan() {
		if pod, is := event.Object.(*corev1.Pod); is {
			require.Equal(t, "a", pod.Name)
			seen++
		}
	}
	require.Equal(t, events, seen)
}

func TestAnswersOfAProjectsMachinesHaveOneBudget(t *testing.T) {
	client, _ := hostileServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[{}`+strings.Repeat(",{}", 4<<10)+"]}") // 4 MiB in memory
	})
	list := func(ctx context.Context) error {
		_, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		return err
	}
	require.NoError(t, list(t.Context()))
	budget := memory.NewGuard(nil).Budget(32 << 20)
	one, other := budget.Account("one"), budget.Account("other")
	require.NoError(t, one.Take(14<<20))
	require.ErrorContains(t, list(memory.With(t.Context(), one)), "are not free")
	for range 5 {
		require.NoError(t, list(memory.With(t.Context(), other)), "an answer is given back")
	}
	one.Close()
	require.NoError(t, list(memory.With(t.Context(), budget.Account("one"))))
}
