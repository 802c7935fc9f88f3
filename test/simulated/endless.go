package simulated

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"golang.org/x/crypto/ssh"
)

// Answers of machines whose owner controls them completely.

var zeros [1 << 20]byte // a value of etcd may have 1.5 MiB

// flood answers a command with endless output: alternately one endless line, and endless lines after the number that the
// command expects first.
func (n *node) flood(channel ssh.Channel) {
	n.mutex.Lock()
	n.floods++
	odd := n.floods%2 == 1
	n.mutex.Unlock()
	more := bytes.Repeat([]byte("y"), 32<<10)
	if odd {
		more = bytes.Repeat([]byte("yes\n"), 8<<10)
		if _, err := io.WriteString(channel, "4711\n"); err != nil {
			return
		}
	}
	for {
		if _, err := channel.Write(more); err != nil {
			return
		}
	}
}

// flood answers a request of an API server, compressed: a list of empty objects, each of which takes a KiB in memory.
func flood(out http.ResponseWriter, request *http.Request) {
	out.Header().Set("Content-Encoding", "gzip")
	out.WriteHeader(http.StatusOK)
	_, err := out.Write(packed(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{}`))
	for more := packed(strings.Repeat(",{}", 1<<20)); err == nil && request.Context().Err() == nil; {
		_, err = out.Write(more)
	}
}

// packed is a member of gzip's format; members can follow one another (RFC 1952, section 2.2).
func packed(text string) []byte {
	var made bytes.Buffer
	to := gzip.NewWriter(&made)
	_, _ = io.WriteString(to, text) // a buffer takes all
	_ = to.Close()
	return made.Bytes()
}

// endlessAnswer is an answer of etcd that is larger than any real one; gRPC has no answers without end.
func endlessAnswer(request any) any {
	header := &etcdserverpb.ResponseHeader{Revision: 1}
	switch request.(type) {
	case *etcdserverpb.MemberListRequest:
		return &etcdserverpb.MemberListResponse{Header: header, Members: []*etcdserverpb.Member{{Name: strings.Repeat("m", 24<<20)}}}
	case *etcdserverpb.StatusRequest:
		return &etcdserverpb.StatusResponse{Header: header, Version: strings.Repeat("3", 24<<20)}
	}
	pairs := make([]*mvccpb.KeyValue, 24)
	for i := range pairs {
		pairs[i] = &mvccpb.KeyValue{Key: []byte("k"), Value: zeros[:]}
	}
	return &etcdserverpb.RangeResponse{Header: header, Kvs: pairs, More: true}
}
