/* Scores of one token read where they are in the engine's message: what read_row in row_forms.py says.
 *
 * Known is only what engines write in short: one row with all of its numbers in place. For whatever else there may be,
 * malformed or not, the answer is None. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

/* msgpack's first bytes. The length of an extension follows, or is a power of 2 that the byte itself tells. */
#define ARRAY_OF(count) (0x90 | (count))
#define STRING_OF(length) (0xa0 | (length))
#define NIL 0xc0
#define EXTENSION 0xc7
#define FIRST_FIXED_EXTENSION 0xd4
#define LAST_FIXED_EXTENSION 0xd8

/* wire.RAW_VIEW. */
#define RAW_VIEW 3

/* domain.logprobs.LogprobColumns, and WHOLE_VOCABULARY. */
static PyObject *columns_type;
#define WHOLE_VOCABULARY (-1)

/* What of the message is not read yet. */
typedef struct {
    const unsigned char *next, *end;
} Unread;

/* The numbers of a tensor, one after the other in little-endian order, which is the machine's. */
typedef struct {
    const unsigned char *start;
    int kind, size, count;
} Numbers;

/* -1 where there is none. */
static int
next_byte(Unread *unread)
{
    return unread->next < unread->end ? *unread->next++ : -1;
}

/* The length of numbers in place, -1 if there is anything else. */
static int
next_length(Unread *unread)
{
    const int type = next_byte(unread);
    int length = -1;
    if (type == EXTENSION) {
        length = next_byte(unread);
    }
    else if (type >= FIRST_FIXED_EXTENSION && type <= LAST_FIXED_EXTENSION) {
        length = 1 << (type - FIRST_FIXED_EXTENSION);
    }
    return next_byte(unread) == RAW_VIEW ? length : -1;
}

/* Whether there is a tensor of one row that can be read: its element type, such as `<i4`, its shape, its numbers. */
static int
next_tensor(Unread *unread, int dimensions, Numbers *numbers)
{
    if (next_byte(unread) != ARRAY_OF(3) || next_byte(unread) != STRING_OF(3) || next_byte(unread) != '<') {
        return 0;
    }
    numbers->kind = next_byte(unread);
    numbers->size = next_byte(unread) - '0';
    if ((numbers->kind != 'i' && numbers->kind != 'f') || (numbers->size != 4 && numbers->size != 8)
        || next_byte(unread) != ARRAY_OF(dimensions) || next_byte(unread) != 1) {
        return 0;
    }
    /* a first byte that is no small number itself is more than fits into an extension */
    numbers->count = dimensions == 1 ? 1 : next_byte(unread);
    const int length = next_length(unread);
    if (numbers->count < 1 || length != numbers->count * numbers->size || length > unread->end - unread->next) {
        return 0;
    }
    numbers->start = unread->next;
    unread->next += length;
    return 1;
}

static PyObject *
number_at(const Numbers *numbers, int place)
{
    const unsigned char *start = numbers->start + place * numbers->size;
    if (numbers->kind == 'i' && numbers->size == 4) {
        int32_t number;
        memcpy(&number, start, sizeof(number));
        return PyLong_FromLong(number);
    }
    if (numbers->kind == 'i') {
        int64_t number;
        memcpy(&number, start, sizeof(number));
        return PyLong_FromLongLong(number);
    }
    if (numbers->size == 4) {
        float number;
        memcpy(&number, start, sizeof(number));
        return PyFloat_FromDouble(number);
    }
    double number;
    memcpy(&number, start, sizeof(number));
    return PyFloat_FromDouble(number);
}

/* The first of them. */
static PyObject *
tuple_of(const Numbers *numbers, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int place = 0; tuple != NULL && place < count; place++) {
        PyObject *number = number_at(numbers, place);
        if (number == NULL) {
            Py_CLEAR(tuple);
        }
        else {
            PyTuple_SET_ITEM(tuple, place, number);
        }
    }
    return tuple;
}

static PyObject *
columns_of(const Numbers *ids, const Numbers *logprobs, const Numbers *ranks, Py_ssize_t alternatives)
{
    const int is_cut = alternatives != WHOLE_VOCABULARY && alternatives < ids->count;
    const int width = is_cut ? (int)alternatives + 1 : ids->count;
    PyObject *fields[] = {PyLong_FromLong(width), tuple_of(ids, width), tuple_of(logprobs, width), tuple_of(ranks, 1)};
    PyObject *columns = NULL;
    if (fields[0] != NULL && fields[1] != NULL && fields[2] != NULL && fields[3] != NULL) {
        columns = PyObject_Vectorcall(columns_type, fields, 4, NULL);
    }
    for (int field = 0; field < 4; field++) {
        Py_XDECREF(fields[field]);
    }
    return columns;
}

static PyObject *
read_row(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2) {
        return PyErr_Format(PyExc_TypeError, "read_row takes 2 arguments, got %zd", count);
    }
    const Py_ssize_t alternatives = PyNumber_AsSsize_t(arguments[1], NULL); /* the largest one for any larger one */
    if (alternatives == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!PyObject_CheckBuffer(arguments[0]) || alternatives < WHOLE_VOCABULARY) {
        Py_RETURN_NONE; /* there are no scores, or they are decoded */
    }
    Py_buffer buffer;
    if (PyObject_GetBuffer(arguments[0], &buffer, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    Unread unread = {buffer.buf, (const unsigned char *)buffer.buf + buffer.len};
    Numbers ids, logprobs, ranks;
    PyObject *columns;
    const int parts = next_byte(&unread);
    if ((parts == ARRAY_OF(3) || parts == ARRAY_OF(4)) && next_tensor(&unread, 2, &ids)
        && next_tensor(&unread, 2, &logprobs) && next_tensor(&unread, 1, &ranks) && ids.count == logprobs.count
        && (parts == ARRAY_OF(3) || next_byte(&unread) == NIL) && unread.next == unread.end) {
        columns = columns_of(&ids, &logprobs, &ranks, alternatives);
    }
    else {
        columns = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&buffer);
    return columns;
}

static PyMethodDef methods[] = {
    {"read_row", (PyCFunction)(void (*)(void))read_row, METH_FASTCALL, "See row_forms.read_row."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_row_reading",
    .m_doc = "Scores of one token read where they are, compiled.",
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__row_reading(void)
{
    PyObject *logprobs = PyImport_ImportModule("domain.logprobs");
    Py_XSETREF(columns_type, logprobs == NULL ? NULL : PyObject_GetAttrString(logprobs, "LogprobColumns"));
    Py_XDECREF(logprobs);
    return columns_type == NULL ? NULL : PyModule_Create(&definition);
}
