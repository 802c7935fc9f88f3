package store

import "context"

// Insert writes rows as they are.
func (s *Store) Insert(ctx context.Context, rows any) error { return s.rows(ctx).Create(rows).Error }

// SweepLock is the lock of the server that sweeps.
const SweepLock = sweepLock
