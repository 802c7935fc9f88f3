package door

import (
	"context"
	"encoding/json"
)

// JSONWork is work whose input and result are JSON.
func JSONWork[In, Out any](of func(In) (Out, error)) Work {
	return func(input []byte) ([]byte, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, err
		}
		out, err := of(in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}

// InChild has a child do JSONWork of the job's kind, which is the function of. Without children (nil) this process calls the function: tools that read
// their own user's files have none.
func InChild[In, Out any](ctx context.Context, children *Children, job Job, of func(In) (Out, error), in In) (out Out, err error) {
	if children == nil {
		return of(in)
	}
	if job.Input, err = json.Marshal(in); err != nil {
		return out, err
	}
	result, err := children.Run(ctx, job)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(result, &out)
}
