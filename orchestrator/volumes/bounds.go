package volumes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/burano/burano/internal/panics"
)

// The clients are a tenant's machines, which may send any requests, in any number.
const (
	mostAsked   = 64 << 10 // bytes of a call; the specification bounds each of its texts to 128 bytes, and of maps to 4 KiB
	mostHeaders = 16 << 10 // bytes
	mostCalls   = 64       // at the same time; the controllers make at most 10 of each kind
	callTime    = 10 * time.Minute
	callRate    = 20 // a second, after the first callBurst ones; others wait
	callBurst   = 200
)

// Bounds are the options of a server of one cluster: bounds on the requests, and on their number, and a panic that ends the call and not the program.
func Bounds(logger *slog.Logger) []grpc.ServerOption {
	calls := rate.NewLimiter(callRate, callBurst)
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(mostAsked), grpc.MaxHeaderListSize(mostHeaders), grpc.MaxConcurrentStreams(mostCalls),
		grpc.UnaryInterceptor(func(ctx context.Context, asked any, call *grpc.UnaryServerInfo, answer grpc.UnaryHandler) (answered any, err error) {
			ctx, cancel := context.WithTimeoutCause(ctx, callTime, fmt.Errorf("it took longer than %s", callTime))
			defer cancel()
			if err := calls.Wait(ctx); err != nil {
				return nil, status.Error(codes.ResourceExhausted, "the cluster asks for too much at once: it is tried again")
			}
			err = panics.Run(func() (err error) {
				answered, err = answer(ctx, asked)
				return err
			})
			var failed *panics.Error
			if errors.As(err, &failed) {
				logger.ErrorContext(ctx, "a call of a cluster's controllers of volumes failed", "call", call.FullMethod, "error", failed, "stack", string(failed.Stack))
				return nil, status.Error(codes.Internal, failed.Error())
			}
			return answered, err
		}),
	}
}
