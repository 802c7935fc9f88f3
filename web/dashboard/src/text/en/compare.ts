export const compare = {
  title: 'Comparison of two runs',
  compare: 'Compare',
  earlier: 'Earlier run',
  later: 'Later run',
  difference: 'Difference',
  changes: 'What was deployed',
  noChanges: 'Both runs deployed the same description.',
  noSteps: 'Neither run had steps.',
  kinds: { added: 'Added', changed: 'Changed', removed: 'Removed' },
  verdicts: { slower: 'Slower', faster: 'Faster', same: 'As before', new: 'New', gone: 'Gone' },
};
