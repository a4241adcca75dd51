/* Formats of tokens filled in with their numbers: what fill_rows in filling.py does, and says.
 *
 * What is written grows at its end, on the stack as long as it is short. No object is made for a score. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

/* What is written, growing at its end: first in memory that its owner has anyway. */
typedef struct {
    char *start;
    Py_ssize_t length, room;
    char *own; /* memory of its own, once it takes more */
} Text;

static int
text_add(Text *text, const char *added, Py_ssize_t count)
{
    if (count > text->room - text->length) {
        if (count > PY_SSIZE_T_MAX / 2 - text->length) {
            PyErr_NoMemory();
            return -1;
        }
        Py_ssize_t room = 2 * (text->length + count);
        char *more = PyMem_Realloc(text->own, (size_t)room);
        if (more == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        if (text->own == NULL) {
            memcpy(more, text->start, (size_t)text->length);
        }
        text->start = text->own = more;
        text->room = room;
    }
    memcpy(text->start + text->length, added, (size_t)count);
    text->length += count;
    return 0;
}

/* domain.logprobs.LOWEST_LOGPROB. */
#define LOWEST (-9999.0)
#define LOWEST_DIGITS 4
static const char lowest_text[] = "-9999.0";

/* msgspec's encoder of JSON: it writes the same numbers as for everything else. */
static PyObject *encode;

/* One number as it is written. */
typedef struct {
    const char *start;
    Py_ssize_t length;
} Number;

/* The format with its first place filled in with `number`, and a second one with `rank`. */
static int
text_fill(Text *text, PyObject *format, Number number, Number rank)
{
    if (!PyBytes_Check(format)) {
        PyErr_Format(PyExc_TypeError, "a format is bytes, not %s", Py_TYPE(format)->tp_name);
        return -1;
    }
    const char *rest = PyBytes_AS_STRING(format), *end = rest + PyBytes_GET_SIZE(format), *sign;
    Number next = number;
    while ((sign = memchr(rest, '%', (size_t)(end - rest))) != NULL) {
        if (text_add(text, rest, sign - rest) < 0) {
            return -1;
        }
        if (sign + 1 < end && sign[1] == '%') {
            if (text_add(text, sign, 1) < 0) {
                return -1;
            }
        }
        else if (sign + 1 < end && sign[1] == 'b' && next.start != NULL) {
            if (text_add(text, next.start, next.length) < 0) {
                return -1;
            }
            next = rank;
        }
        else {
            PyErr_SetString(PyExc_ValueError, "a format has a place that nothing is for");
            return -1;
        }
        rest = sign + 2;
    }
    return text_add(text, rest, end - rest);
}

/* Whether something was there before, by its hash and who it is: open addressing, at most half full. */
typedef struct {
    uint64_t key;
    PyObject *format; /* if it is one, else `key` is all there is to it */
    int taken;
} Slot;

#define FEW_COLUMNS 32

typedef struct {
    Slot few[2 * FEW_COLUMNS];
    Slot *slots;
    size_t mask;
} Seen;

static int
seen_begin(Seen *seen, Py_ssize_t columns)
{
    size_t count = 2 * FEW_COLUMNS;
    while (count < 2 * (size_t)columns) {
        count *= 2;
    }
    seen->mask = count - 1;
    seen->slots = count == 2 * FEW_COLUMNS ? seen->few : PyMem_Malloc(count * sizeof(Slot));
    if (seen->slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void
seen_clear(Seen *seen)
{
    memset(seen->slots, 0, (seen->mask + 1) * sizeof(Slot));
}

static void
seen_end(Seen *seen)
{
    if (seen->slots != seen->few) {
        PyMem_Free(seen->slots);
    }
}

static int
is_same(const Slot *slot, uint64_t key, PyObject *format)
{
    if (slot->key != key || slot->format == format) {
        return slot->key == key;
    }
    Py_ssize_t length = PyBytes_GET_SIZE(format);
    return PyBytes_GET_SIZE(slot->format) == length
        && memcmp(PyBytes_AS_STRING(slot->format), PyBytes_AS_STRING(format), (size_t)length) == 0;
}

/* Adds it unless it is there; whether it was. A format must outlive what it is added to. */
static int
seen_before(Seen *seen, uint64_t key, PyObject *format)
{
    size_t place = (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & seen->mask;
    while (seen->slots[place].taken) {
        if (is_same(&seen->slots[place], key, format)) {
            return 1;
        }
        place = (place + 1) & seen->mask;
    }
    seen->slots[place] = (Slot){key, format, 1};
    return 0;
}

/* The next number of a JSON array; `*rest` is behind the bracket or comma before it. What has no JSON, or is too low,
 * is the lowest logprob. */
static int
next_number(const char **rest, const char *end, Number *number)
{
    const char *start = *rest, *stop = start, *whole;
    char *after;
    while (stop < end && *stop != ',' && *stop != ']') {
        stop++;
    }
    if (stop == start || stop == end) {
        PyErr_SetString(PyExc_ValueError, "there are too few logprobs");
        return -1;
    }
    *rest = stop + 1;
    *number = (Number){start, stop - start};
    for (whole = start + 1; whole < stop && *whole >= '0' && *whole <= '9'; whole++) {
    }
    int is_long = whole - start > LOWEST_DIGITS || memchr(whole, 'e', (size_t)(stop - whole)) != NULL;
    if (*start == 'n' || (is_long && PyOS_string_to_double(start, &after, NULL) < LOWEST)) {
        *number = (Number){lowest_text, (Py_ssize_t)strlen(lowest_text)};
    }
    return 0;
}

/* The format that is kept of an id, borrowed, or NULL. */
static inline PyObject *
kept_of(PyObject *kept, uint64_t key)
{
    if (key >= (uint64_t)PyList_GET_SIZE(kept)) {
        return NULL;
    }
    PyObject *format = PyList_GET_ITEM(kept, (Py_ssize_t)key);
    return format == Py_None ? NULL : format;
}

/* The format of an id, a new reference. */
static PyObject *
format_of(PyObject *token_id, uint64_t key, PyObject *kept, PyObject *make)
{
    PyObject *format = kept_of(kept, key);
    if (format != NULL) {
        return Py_NewRef(format);
    }
    return PyObject_CallOneArg(make, token_id);
}

/* An item of a list or tuple that others may have changed meanwhile, borrowed. */
static PyObject *
item_of(PyObject *sequence, Py_ssize_t place)
{
    if (place >= PySequence_Fast_GET_SIZE(sequence)) {
        PyErr_SetString(PyExc_ValueError, "there are fewer items than rows ask for");
        return NULL;
    }
    return PySequence_Fast_GET_ITEM(sequence, place);
}

#define RANK_ROOM 24

/* The rank of an entry, written into `room`. */
static int
rank_of(PyObject *ranks, Py_ssize_t row, Py_ssize_t column, char room[RANK_ROOM], Number *rank)
{
    long long value = column;
    if (column == 0) {
        PyObject *given = item_of(ranks, row);
        value = given == NULL ? -1 : PyLong_AsLongLong(given);
        if (value == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    const char *form = column == 0 && value == 0 ? "null" : "%lld";
    *rank = (Number){room, PyOS_snprintf(room, RANK_ROOM, form, value)};
    return 0;
}

/* The arguments: what is a sequence is a list or tuple, and `ranks` and `heads` may be NULL. */
typedef struct {
    PyObject *token_ids, *ranks, *heads, *firsts;
    PyObject *kept, *make, *opening, *closing;
    PyObject *before_id, *after_id; /* formats that are made by writing the id between these, or NULL */
    Py_ssize_t width, shown, most;
    int keys_once;
} Rows;

/* What is written, and what it takes meanwhile. */
typedef struct {
    Text rows, first_numbers;
    char few_rows[4096], few_numbers[64];
    const char *number, *numbers_end; /* the next one */
    Seen ids, formats;
    PyObject **held; /* the formats of a row */
    Py_ssize_t holding;
} Work;

/* What a row will read is fetched at once: formats lie all over memory, where nobody looked lately. */
static void
fetch_formats(const Rows *rows, Py_ssize_t row)
{
#if defined(__GNUC__)
    const Py_ssize_t start = row * rows->width, size = PyList_GET_SIZE(rows->kept);
    const Py_ssize_t end = Py_MIN(start + rows->shown, PySequence_Fast_GET_SIZE(rows->token_ids));
    if (size == 0 || rows->shown > FEW_COLUMNS) {
        return;
    }
    for (int is_found = 0; is_found < 2; is_found++) {
        for (Py_ssize_t place = start + 1; place < end; place++) {
            PyObject *token_id = PySequence_Fast_GET_ITEM(rows->token_ids, place);
            int overflow;
            const long long id = PyLong_Check(token_id) ? PyLong_AsLongLongAndOverflow(token_id, &overflow) : -1;
            if (id < 0 || id >= size) {
                continue;
            }
            PyObject **slot = &((PyListObject *)rows->kept)->ob_item[id];
            __builtin_prefetch(is_found ? (const char *)*slot : (const char *)slot);
            if (is_found) {
                __builtin_prefetch((const char *)*slot + 64);
            }
        }
    }
#endif
}

/* An entry between what stands around its id. */
static int
fill_around_id(const Rows *rows, PyObject *token_id, Number number, Number rank, Text *text)
{
    char room[24], *const end = room + sizeof(room), *digits = end;
    int overflow;
    const long long id = PyLong_AsLongLongAndOverflow(token_id, &overflow);
    unsigned long long rest = PyLong_AsUnsignedLongLongMask(token_id);
    if (id < 0 && !overflow) {
        rest = 0 - rest;
    }
    do {
        *--digits = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (id < 0 && !overflow) {
        *--digits = '-';
    }
    if (text_add(text, PyBytes_AS_STRING(rows->before_id), PyBytes_GET_SIZE(rows->before_id)) < 0
        || text_add(text, digits, end - digits) < 0) {
        return -1;
    }
    return text_fill(text, rows->after_id, number, rank);
}

/* One entry of a row. */
static int
fill_entry(const Rows *rows, Py_ssize_t row, Py_ssize_t column, uint64_t key, PyObject *token_id, Number number,
           int *written, Work *work)
{
    const int is_around_id = column > 0 && rows->before_id != NULL;
    char room[RANK_ROOM];
    Number rank = {NULL, 0};
    PyObject *format = NULL;
    if (!is_around_id) {
        format = column == 0 ? Py_XNewRef(item_of(rows->firsts, row))
                             : format_of(token_id, key, rows->kept, rows->make);
        if (format == NULL) {
            return -1;
        }
        work->held[work->holding++] = format;
        if (!PyBytes_Check(format)) {
            PyErr_SetString(PyExc_TypeError, "a format is bytes");
            return -1;
        }
        if (rows->keys_once && rows->shown > 1
            && seen_before(&work->formats, (uint64_t)PyObject_Hash(format), format)) {
            return 0;
        }
    }
    if (rows->ranks != NULL && rank_of(rows->ranks, row, column, room, &rank) < 0) {
        return -1;
    }
    if ((*written)++ && text_add(&work->rows, ",", 1) < 0) {
        return -1;
    }
    return is_around_id ? fill_around_id(rows, token_id, number, rank, &work->rows)
                        : text_fill(&work->rows, format, number, rank);
}

static int
fill_row(const Rows *rows, Py_ssize_t row, Work *work)
{
    Text *text = &work->rows;
    Py_ssize_t counted = 0;
    int written = 0;
    if (rows->shown > 1) {
        fetch_formats(rows, row);
        seen_clear(&work->ids);
        if (rows->keys_once) {
            seen_clear(&work->formats);
        }
    }
    if (row > 0 && (text_add(text, ",", 1) < 0 || text_add(&work->first_numbers, ",", 1) < 0)) {
        return -1;
    }
    if (text_add(text, PyBytes_AS_STRING(rows->opening), PyBytes_GET_SIZE(rows->opening)) < 0) {
        return -1;
    }
    for (Py_ssize_t column = 0; column < rows->width; column++) {
        Number number;
        if (next_number(&work->number, work->numbers_end, &number) < 0) {
            return -1;
        }
        if (column == 0) {
            if (text_add(&work->first_numbers, number.start, number.length) < 0) {
                return -1;
            }
            if (rows->heads != NULL) {
                PyObject *head = item_of(rows->heads, row);
                if (head == NULL || text_fill(text, head, number, (Number){NULL, 0}) < 0) {
                    return -1;
                }
            }
        }
        if (column >= rows->shown || counted >= rows->most) {
            continue;
        }
        PyObject *token_id = item_of(rows->token_ids, row * rows->width + column);
        uint64_t key = token_id == NULL ? UINT64_MAX : PyLong_AsUnsignedLongLongMask(token_id);
        if (key == UINT64_MAX && PyErr_Occurred()) {
            return -1;
        }
        if (rows->shown > 1 && seen_before(&work->ids, key, NULL)) {
            continue;
        }
        counted++;
        if (fill_entry(rows, row, column, key, token_id, number, &written, work) < 0) {
            return -1;
        }
    }
    return text_add(text, PyBytes_AS_STRING(rows->closing), PyBytes_GET_SIZE(rows->closing));
}

static PyObject *
fill_all(const Rows *rows, PyObject *numbers)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(rows->firsts);
    PyObject *few_held[FEW_COLUMNS], *filled = NULL;
    int failed = 0;
    Work work;
    work.held = few_held;
    work.holding = 0;
    work.number = PyBytes_AS_STRING(numbers) + 1;
    work.numbers_end = PyBytes_AS_STRING(numbers) + PyBytes_GET_SIZE(numbers);
    work.ids.slots = work.ids.few;
    work.formats.slots = work.formats.few;

    work.rows = (Text){.start = work.few_rows, .room = sizeof(work.few_rows)};
    work.first_numbers = (Text){.start = work.few_numbers, .room = sizeof(work.few_numbers)};
    if (seen_begin(&work.ids, rows->shown) < 0 || seen_begin(&work.formats, rows->keys_once ? rows->shown : 0) < 0) {
        goto done;
    }
    if (rows->shown > FEW_COLUMNS && (work.held = PyMem_New(PyObject *, rows->shown)) == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t row = 0; row < count && !failed; row++) {
        failed = fill_row(rows, row, &work) < 0;
        while (work.holding > 0) {
            Py_DECREF(work.held[--work.holding]);
        }
    }
    if (!failed) {
        filled = Py_BuildValue("(y#y#)", work.rows.start, work.rows.length, work.first_numbers.start,
                               work.first_numbers.length);
    }
done:
    if (work.held != few_held) {
        PyMem_Free(work.held);
    }
    seen_end(&work.ids);
    seen_end(&work.formats);
    PyMem_Free(work.rows.own);
    PyMem_Free(work.first_numbers.own);
    return filled;
}

/* A list or tuple; NULL for None, and with an error. */
static PyObject *
sequence_or_none(PyObject *given)
{
    return given == Py_None || PyErr_Occurred() ? NULL : PySequence_Fast(given, "fill_rows takes sequences");
}

static PyObject *
fill_rows(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 13) {
        PyErr_Format(PyExc_TypeError, "fill_rows takes 13 arguments, got %zd", count);
        return NULL;
    }
    Rows rows = {
        .width = PyNumber_AsSsize_t(arguments[3], PyExc_OverflowError),
        .kept = arguments[8],
        .make = arguments[9],
        .opening = arguments[10],
        .closing = arguments[11],
        .keys_once = PyObject_IsTrue(arguments[12]),
    };
    rows.shown = PyErr_Occurred() ? -1 : PyNumber_AsSsize_t(arguments[4], PyExc_OverflowError);
    rows.most = PyErr_Occurred() ? -1 : PyNumber_AsSsize_t(arguments[5], PyExc_OverflowError);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (!PyList_Check(rows.kept) || !PyBytes_Check(rows.opening) || !PyBytes_Check(rows.closing) || rows.width < 1
        || rows.shown < 1 || rows.width > PY_SSIZE_T_MAX / (Py_ssize_t)(4 * sizeof(Slot))) {
        PyErr_SetString(PyExc_TypeError, "fill_rows takes other arguments than these");
        return NULL;
    }
    if (PyTuple_Check(rows.make)) {
        if (!PyArg_ParseTuple(rows.make, "SS", &rows.before_id, &rows.after_id)) {
            return NULL;
        }
    }
    if (rows.shown > rows.width) {
        rows.shown = rows.width;
    }
    PyObject *filled = NULL, *numbers = PyObject_CallOneArg(encode, arguments[1]);
    rows.token_ids = numbers == NULL ? NULL : sequence_or_none(arguments[0]);
    rows.firsts = numbers == NULL ? NULL : sequence_or_none(arguments[7]);
    rows.ranks = numbers == NULL ? NULL : sequence_or_none(arguments[2]);
    rows.heads = numbers == NULL ? NULL : sequence_or_none(arguments[6]);
    if (rows.token_ids != NULL && rows.firsts != NULL && !PyErr_Occurred()) {
        filled = fill_all(&rows, numbers);
    }
    Py_XDECREF(numbers);
    Py_XDECREF(rows.token_ids);
    Py_XDECREF(rows.firsts);
    Py_XDECREF(rows.ranks);
    Py_XDECREF(rows.heads);
    return filled;
}

static PyMethodDef methods[] = {
    {"fill_rows", (PyCFunction)(void (*)(void))fill_rows, METH_FASTCALL, "See filling.fill_rows."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_filling",
    .m_doc = "Formats of tokens filled in with their numbers, compiled.",
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__filling(void)
{
    PyObject *json = PyImport_ImportModule("msgspec.json");
    PyObject *encoder = json == NULL ? NULL : PyObject_CallMethod(json, "Encoder", NULL);
    Py_XSETREF(encode, encoder == NULL ? NULL : PyObject_GetAttrString(encoder, "encode"));
    Py_XDECREF(encoder);
    Py_XDECREF(json);
    return encode == NULL ? NULL : PyModule_Create(&definition);
}
