package etcd

import (
	"bytes"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/internal/door"
)

// SecretsPrefix is where the API server keeps Secrets.
const SecretsPrefix = "/registry/secrets/"

// sealedPage is how many values are looked at at once: a Secret may have 1 MiB.
const sealedPage = 50

// mostOtherwise is how many bytes the keys may have that are returned.
const mostOtherwise = 16 << 20

// SealedOtherwise are the keys below prefix whose values do not begin with mark: a value that the API server has sealed begins with the name of the key.
func SealedOtherwise(ctx context.Context, client *clientv3.Client, prefix, mark string) (otherwise []string, err error) {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	left := int64(mostOtherwise)
	for {
		var page *clientv3.GetResponse
		err := patiently(ctx, "look at what is below "+prefix, func(ctx context.Context) (err error) {
			page, err = client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(sealedPage))
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, pair := range page.Kvs {
			if !bytes.HasPrefix(pair.Value, []byte(mark)) {
				otherwise = append(otherwise, string(pair.Key))
				left -= int64(len(pair.Key))
			}
		}
		if left < 0 {
			return nil, &door.Exceeded{What: "the list of keys below " + prefix, Bound: door.Bytes(mostOtherwise)}
		}
		if !page.More {
			return otherwise, nil
		}
		// A member that reports more keys must advance, or the loop would not end.
		next := ""
		if len(page.Kvs) > 0 {
			next = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		}
		if next <= from || next > end {
			return nil, fmt.Errorf("look at what is below %s: etcd does not go on after %q", prefix, from)
		}
		from = next
	}
}
