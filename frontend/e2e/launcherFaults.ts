/**
 * Drafts of a launch, each with a fault in several fields, and what the review says of them. A draft that names no
 * image is given one.
 */
export const faultyDrafts: [Record<string, unknown>, ...(string | RegExp)[]][] = [
  [
    { image: 'py thon', manual: true, cpu: 9999, memory: '1m', shm: '0m', threads: 1001, ports: ['80'] },
    'An image reference cannot contain spaces.',
    /has \d+ CPUs\.$/,
    /at least 64/,
    /^Enter an amount above 0/,
    'Enter a whole number from 1 to 1000.',
    '80 is outside the range 1024 to 65535.',
  ],
  [
    { image: 'Python:3', manual: true, cpu: 0, memory: '512m', shm: '512m', ports: ['x'] },
    /must be lowercase/,
    'Enter a whole number of CPUs, at least 1.',
    /must be less than/,
    /is not a port or a range/,
  ],
  [
    { image: '', manual: true, cpu: 1.5, memory: '999t', ports: ['9001:9000'] },
    'Choose an environment or enter an image.',
    'Enter a whole number of CPUs, at least 1.',
    /for sessions\.$/,
    'In 9001:9000, the end is below the start.',
  ],
  [
    { cpu: null, memory: 'g', ports: ['8080', '8080'], type: 'batch' },
    'Enter a number of CPUs.',
    'Enter an amount of memory.',
    '8080 is already in the list.',
    'Enter the command to run.',
  ],
  [
    { ports: ['9000:9010'], type: 'batch', command: 'true', startAt: '2020-01-01T00:00:00Z', timeout: '0h' },
    /^At most 10 ports/,
    'The start time must be in the future.',
    'Enter a whole number of at least 1.',
  ],
  [
    {
      ports: ['7430'],
      env: [
        ['1A', 'x'],
        ['A', '1'],
        ['A', '2'],
        ['SLIPWAY_X', '1'],
        ['', '1'],
      ],
    },
    /^Slipway uses the ports 7420 to 7439/,
    /cannot start with a digit/,
    'A is already set.',
    /start with SLIPWAY_/,
    'Enter a name, or remove the row.',
  ],
  [
    {
      mounts: [
        ['relative', '', 0],
        ['/tmp', '/etc', 0],
        ['/tmp', '/usr/local/x', 0],
        ['/tmp', '.bashrc', 0],
        ['/tmp', '/data', 0],
        ['/opt', '/data/more', 0],
        ['/tmp', '/home/work', 0],
      ],
    },
    'Enter an absolute path, starting with /.',
    '/etc is a system path of the session.',
    '/usr/local/x is a system path of the session.',
    '/home/work/.bashrc is a system path of the session.',
    /^\/data\/more is inside \/data, where something else is mounted/,
    /^Only a folder can be the home directory/,
  ],
  [
    {
      mounts: [
        ['/tmp', 'x', 0],
        ['/var', 'x', 0],
      ],
    },
    /already mounted at \/home\/work\/x/,
  ],
  [{ agent: 'nowhere' }, 'Machine nowhere not found.'],
]
