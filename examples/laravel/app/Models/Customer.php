<?php

declare(strict_types=1);

namespace App\Models;

use Illuminate\Database\Eloquent\Model;

/**
 * @property int $id
 * @property string $name
 * @property string $email
 * @property bool $welcomed
 */
final class Customer extends Model
{
    public $timestamps = false;

    /** @var list<string> */
    protected $fillable = ['name', 'email'];

    /** @var array<string, string> */
    protected $casts = ['welcomed' => 'bool'];
}
