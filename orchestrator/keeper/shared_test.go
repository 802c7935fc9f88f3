package keeper

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

type closes struct{ times atomic.Int64 }

func (c *closes) Close() error {
	c.times.Add(1)
	return nil
}

func TestDutiesOfACheckShareWhatOneOfThemMakes(t *testing.T) {
	environment, made, one := &Environment{}, atomic.Int64{}, &closes{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			got, err := environment.Share("a", func() (io.Closer, error) {
				made.Add(1)
				return one, nil
			})
			require.NoError(t, err)
			require.Same(t, one, got)
		})
	}
	all.Wait()
	require.EqualValues(t, 1, made.Load())

	another := &closes{}
	got, err := environment.Share("b", func() (io.Closer, error) { return another, nil })
	require.NoError(t, err)
	require.Same(t, another, got)
	failure := errors.New("it is away")
	for range 2 {
		_, err := environment.Share("c", func() (io.Closer, error) {
			made.Add(1)
			return nil, failure
		})
		require.ErrorIs(t, err, failure)
	}
	require.EqualValues(t, 2, made.Load(), "a failure is not tried again in the same check")

	for range 2 {
		_, err := environment.Share("d", func() (io.Closer, error) {
			made.Add(1)
			panic("a mistake")
		})
		require.ErrorContains(t, err, "a mistake")
	}
	require.EqualValues(t, 3, made.Load())

	environment.Close()
	environment.Close()
	require.EqualValues(t, 1, one.times.Load())
	require.EqualValues(t, 1, another.times.Load())
	_, err = environment.Share("a", func() (io.Closer, error) { return one, nil })
	require.ErrorContains(t, err, "the check of the environment has ended")
}
